/* Calls a target of libFuzzer with each input of standard input, a line of hexadecimal digits: for compilers without
 * libFuzzer. Prints how many there were. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(void)
{
    static char line[1 << 16];
    size_t count = 0;
    for (; fgets(line, sizeof line, stdin); count++) {
        const size_t size = strspn(line, "0123456789abcdef") / 2;
        uint8_t *input = malloc(size + !size);
        for (size_t i = 0; i < size; i++) {
            const char digits[] = {line[2 * i], line[2 * i + 1], 0};
            input[i] = (uint8_t)strtoul(digits, NULL, 16);
        }
        LLVMFuzzerTestOneInput(input, size);
        free(input);
    }
    printf("%zu inputs\n", count);
    return 0;
}
