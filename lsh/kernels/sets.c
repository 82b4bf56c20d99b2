/* Exact sets of shingles: an open-addressing table of the distinct shingles of one text. See kernels.h.
 *
 * A hash decides where to look and the bytes decide whether two shingles are equal, so the counts are exact
 * whatever the hash does. Linear probing; the caller keeps a part of the table free.
 */
#include <string.h>

#include "../_murmur3.h"
#include "kernels.h"

/* Up to 8 bytes are hashed as one word (with the length, which tells a trailing NUL from none), longer ones as a whole. */
static uint64_t shingle_hash(const uint8_t *shingle, size_t length)
{
    uint64_t whole[2];
    if (length <= 8)
        return lsh_fmix64(lsh_load_partial(shingle, length) + length * 0x9E3779B97F4A7C15u);
    lsh_murmur3_x64_128(shingle, length, 0, whole);
    return whole[0];
}

/* The slot that holds the shingle, or the free slot where it belongs. */
static lsh_set_slot *find(lsh_set_slot *slots, size_t mask, const uint8_t *text, uint64_t hash, const uint8_t *shingle,
                          size_t length)
{
    size_t at = (size_t)hash & mask;
    while (slots[at].length != 0 && !(slots[at].hash == hash && slots[at].length == length &&
                                      memcmp(text + slots[at].start, shingle, length) == 0))
        at = (at + 1) & mask;
    return &slots[at];
}

size_t lsh_set_add(lsh_set_slot *slots, size_t mask, const uint8_t *text, const lsh_span *spans, size_t count)
{
    size_t added = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *shingle = text + spans[i].start;
        uint64_t hash = shingle_hash(shingle, spans[i].length);
        lsh_set_slot *slot = find(slots, mask, text, hash, shingle, spans[i].length);
        if (slot->length != 0)
            continue;
        *slot = (lsh_set_slot){.hash = hash, .start = spans[i].start, .length = spans[i].length, .mark = 0};
        added++;
    }
    return added;
}

void lsh_set_move(const lsh_set_slot *from, size_t from_mask, lsh_set_slot *to, size_t to_mask)
{
    for (size_t i = 0; i <= from_mask; i++) {
        if (from[i].length == 0)
            continue;
        size_t at = (size_t)from[i].hash & to_mask;
        while (to[at].length != 0)
            at = (at + 1) & to_mask;
        to[at] = from[i];
    }
}

size_t lsh_set_hits(lsh_set_slot *slots, size_t mask, const uint8_t *text, uint64_t mark, const uint8_t *other,
                    const lsh_span *spans, size_t count)
{
    size_t hits = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *shingle = other + spans[i].start;
        lsh_set_slot *slot =
            find(slots, mask, text, shingle_hash(shingle, spans[i].length), shingle, spans[i].length);
        if (slot->length != 0 && slot->mark != mark) {
            slot->mark = mark;
            hits++;
        }
    }
    return hits;
}
