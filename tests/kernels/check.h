/* CHECK(condition): end the program, and name the line, if a condition that must hold does not. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s is wrong\n", __LINE__, #condition);                                           \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)
