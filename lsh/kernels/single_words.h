/* The vectors W of body.h, equal_lanes and v_bits, for an instruction set that does not multiply the first, nor gathers words for
 * the last: one word of 64 bits. */
typedef uint64_t W;
#define LANES_64 1
#define W_FLIP 0
#define w_widen(p) ((W) * (p))
#define w_load(p) (*(p))
#define w_store(p, word) (*(p) = (word))
#define w_one(x) ((W)(x))
#define w_add(a, b) ((a) + (b))
#define w_xor(a, b) ((a) ^ (b))
#define w_and(a, b) ((a) & (b))
#define w_pack(p, a, mask) (*(p) = (a))
#define w_words(p) lsh_load64(p)
#define w_shr(a, r) ((a) >> (r))
#define w_mul(a, c) ((a) * (uint64_t)(c))
#define w_min(a, b) ((a) < (b) ? (a) : (b))

static inline uint32_t v_bits(const uint32_t *words, V a, uint32_t shift)
{
    uint32_t lanes[LANES_32], found = 0;
    v_store(lanes, a);
    LSH_UNROLL for (uint32_t i = 0; i < LANES_32; i++)
        found |= (words[lanes[i] >> shift >> 5] >> (lanes[i] >> shift & 31) & 1) << i;
    return found;
}

static inline uint32_t equal_lanes(const uint64_t *p, uint64_t a)
{
    uint32_t equal = 0;
    LSH_UNROLL for (uint32_t i = 0; i < 8; i++)
        equal |= (uint32_t)(p[i] == a) << i;
    return equal;
}
