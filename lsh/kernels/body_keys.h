/* The band keys of kernels.h; part of body.h.
 *
 * The components of a row are mixed side by side, as the compiler puts them into vectors, and summed by band. Bands of one width
 * are summed in one go: with a width that the compiler knows the sums have no loop. A key is stored as the last step of ROWS
 * rows, as the keys of a band are a column: neighbours are written together.
 */
#define GOLDEN 0x9E3779B97F4A7C15u

enum { KEY_ROWS = 64, KEY_BANDS = 32, KEY_PIECE = 256 };

/* The sums of `bands` bands of `width` words each, side by side: sums[0], sums[KEY_ROWS] ... */
LSH_INLINE void sum_bands(const uint64_t *mixed, size_t bands, const size_t width, uint64_t *sums)
{
    for (size_t b = 0; b < bands; b++) {
        uint64_t sum = 0;
        for (size_t c = 0; c < width; c++)
            sum += mixed[b * width + c];
        sums[b * KEY_ROWS] += sum;
    }
}

static void sum_by_width(const uint64_t *mixed, size_t bands, size_t width, uint64_t *sums)
{
#define OF_WIDTH(w) case w: sum_bands(mixed, bands, w, sums); return;
    switch (width) {
        OF_WIDTH(1) OF_WIDTH(2) OF_WIDTH(3) OF_WIDTH(4) OF_WIDTH(5) OF_WIDTH(6) OF_WIDTH(7) OF_WIDTH(8)
        OF_WIDTH(9) OF_WIDTH(10) OF_WIDTH(11) OF_WIDTH(12) OF_WIDTH(13) OF_WIDTH(14) OF_WIDTH(15) OF_WIDTH(16)
    default:
        sum_bands(mixed, bands, width, sums);
    }
#undef OF_WIDTH
}

/* How many bands from the first on have its width, at most as many as fit. */
static size_t bands_alike(const size_t *bounds, size_t num_bands)
{
    const size_t width = bounds[1] - bounds[0];
    size_t bands = 1;
    while (bands < num_bands && bands < KEY_BANDS && bounds[bands + 1] - bounds[bands] == width &&
           (bands + 1) * width <= KEY_PIECE)
        bands++;
    return bands;
}

/* From the sums of `height` rows to the keys of `bands` bands, the first of which has number `band`. */
static void finish_keys(const uint64_t *sums, size_t band, size_t bands, size_t height, uint64_t *keys, size_t stride)
{
    for (size_t b = 0; b < bands; b++) {
        const uint64_t seed = lsh_fmix64((band + b + 1) * GOLDEN);
        for (size_t row = 0; row < height; row++)
            keys[(band + b) * stride + row] = lsh_fmix64(seed + sums[b * KEY_ROWS + row]);
    }
}

/* sum_row adds `bands` bands of `width` components, the first of which has number `first`; a band wider than a piece comes alone. */
#define DEFINE_BAND_KEYS(name, sum_row, value_type)                                                                    \
    static void sum_row(const value_type *values, size_t first, size_t bands, size_t width, uint64_t *sums)            \
    {                                                                                                                  \
        uint64_t mixed[KEY_PIECE], place = (first + 1) * GOLDEN;                                                       \
        for (size_t left = bands * width, piece; left; left -= piece, values += piece) {                               \
            piece = left < KEY_PIECE ? left : KEY_PIECE;                                                               \
            for (size_t c = 0; c < piece; c++, place += GOLDEN)                                                        \
                mixed[c] = lsh_fmix64(values[c] ^ place);                                                              \
            sum_by_width(mixed, bands, bands == 1 ? piece : width, sums);                                              \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void name(const value_type *rows, size_t count, size_t row_stride, const size_t *bounds, size_t num_bands,  \
                     uint64_t *keys, size_t stride)                                                                    \
    {                                                                                                                  \
        uint64_t sums[KEY_BANDS * KEY_ROWS];                                                                           \
        for (size_t first = 0; first < count; first += KEY_ROWS) {                                                     \
            const size_t height = count - first < KEY_ROWS ? count - first : KEY_ROWS;                                 \
            for (size_t band = 0, bands; band < num_bands; band += bands) {                                            \
                const size_t begin = bounds[band], width = bounds[band + 1] - begin;                                   \
                bands = bands_alike(bounds + band, num_bands - band);                                                  \
                memset(sums, 0, bands * KEY_ROWS * sizeof *sums);                                                      \
                for (size_t row = 0; row < height; row++)                                                              \
                    sum_row(rows + (first + row) * row_stride + begin, begin, bands, width, sums + row);               \
                finish_keys(sums, band, bands, height, keys + first, stride);                                          \
            }                                                                                                          \
        }                                                                                                              \
    }

DEFINE_BAND_KEYS(LSH_SYMBOL(lsh_band_keys_32), LSH_SYMBOL(sum_row_32), uint32_t)
DEFINE_BAND_KEYS(LSH_SYMBOL(lsh_band_keys_64), LSH_SYMBOL(sum_row_64), uint64_t)
