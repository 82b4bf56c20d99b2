/* The kernels for every CPU of an architecture: the bodies with the compiler's default target. */
#define LSH_LEVEL baseline
#include "body.h"
