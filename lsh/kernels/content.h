/* Keys of whole texts, by which equal ones are found.
 *
 * Floor 0: no Python, no allocation, no state. Nothing outside the given bytes is read.
 */
#ifndef LSH_CONTENT_H
#define LSH_CONTENT_H

#include <stddef.h>
#include <stdint.h>

/* Write a hash of each of `count` texts under a secret key. Without it, nobody can choose texts with the same one. It is a sum for
 * each block, several times as fast as SipHash, and SipHash of the sums. */
void lsh_content_keys(const uint8_t *const *texts, const ptrdiff_t *lengths, size_t count, const uint64_t key[2], uint64_t *out);

#endif
