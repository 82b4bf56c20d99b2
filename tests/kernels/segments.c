/* The kernels of lsh/kernels/sorted.c and search.c against plain formulas and with wrong content: segments [ROUNDS [SEED]].
 *
 * Each round makes a segment of random keys, and compares what is found in it, and in a merge of its bands, with formulas
 * that look at every document. Then it changes bytes of the segment at random and uses it again: nothing may be read
 * outside the arrays, and what is found must be documents of the segment. To be built with
 * -fsanitize=address,undefined: each array is allocated for itself.
 *
 * With -DLSH_FUZZ the program is a target of libFuzzer (clang -fsanitize=fuzzer,address,undefined). The first byte of an
 * input chooses one of some small segments; the others are the changes of its content, and what is searched and merged.
 * `.ci/fuzz` builds and runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_murmur3.h"
#include "check.h"
#include "kernels/kernels.h"

enum { BANDS = 3, MOST_QUERIES = 8, MOST_K = 40 };

/* ---- a source of numbers: the input of the fuzzer, or a generator ---- */

static const uint8_t *input;
static size_t input_left;
static uint64_t state = 1;

static uint64_t draw(void) /* xorshift64*, Vigna 2016 */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Du;
}

static size_t below(size_t limit)
{
    uint64_t value = 0;
    if (!input)
        return (size_t)((draw() >> 32) % limit);
    for (size_t most = limit - 1; most && input_left; most >>= 8, input_left--) /* as few bytes as hold the limit */
        value = value << 8 | *input++;
    return (size_t)(value % limit);
}

/* ---- a segment ---- */

typedef struct {
    uint64_t *keys;    /* as they were drawn, of each document */
    uint32_t *numbers; /* 0, 1, 2, ... */
    lsh_sorted sorted;
    uint8_t *memory[2]; /* of its keys and numbers */
    size_t sizes[3];
} band;

static band bands[BANDS];
static lsh_sorted sorted[BANDS];
static lsh_segment segment;
static uint8_t *file, *sketches, *removed;
static lsh_blocks blocks;

static void *get(size_t size)
{
    void *memory = malloc(size ? size : 1);
    CHECK(memory);
    return memory;
}

/* The sections of a band: each in memory of its own, or one after another in the file. */
static uint8_t *place_section(uint8_t *memory, size_t size, size_t *end)
{
    if (!file)
        return memory;
    uint8_t *place = memcpy(file + *end, memory, size);
    *end += (size + 63) / 64 * 64;
    free(memory);
    return place;
}

#ifdef LSH_FUZZ
static size_t some_count(void) { return below(40); }
#else
static size_t some_count(void)
{
    return below(16) ? below(40) : below(200) ? below(3000) : below(2 * LSH_WINDOW);
}
#endif

static void make_band(band *b, size_t count, size_t values, int shift)
{
    lsh_numbered_key *records = get(count * sizeof *records), *other = get(count * sizeof *other);
    b->keys = get(count * sizeof *b->keys);
    b->numbers = get(count * sizeof *b->numbers);
    for (size_t i = 0; i < count; i++) {
        b->keys[i] = (uint64_t)below(values) << shift;
        b->keys[i] = shift % 2 ? lsh_fmix64(b->keys[i]) : b->keys[i];
        b->numbers[i] = (uint32_t)i;
    }
    b->sizes[0] = 8 * count;
    b->sizes[1] = 4 * count;
    for (int i = 0; i < 2; i++)
        b->memory[i] = get(b->sizes[i]);
    lsh_sorted_output out = {b->memory[0], b->memory[1], count, 0};
    lsh_put_keys(&out, lsh_sort_keys(b->keys, b->numbers, count, records, other), count);
    CHECK(out.count == count);
    b->sorted = (lsh_sorted){.count = count};
    free(records);
    free(other);
}

static void make_segment(void)
{
    static const size_t widths[] = {1, 4, 8};
    const size_t count = some_count();
    const size_t values = 1 + below(below(2) ? 4 : 2 * count + 2);
    const size_t width = widths[below(3)], k = 1 + below(MOST_K), size = count * k * width;
    const int in_file = below(2) > 0, shift = (int)below(64);
    size_t whole = size, end = 0;
    for (size_t b = 0; b < BANDS; b++) {
        make_band(bands + b, count, values, shift);
        for (int i = 0; i < 2; i++)
            whole += (bands[b].sizes[i] + 63) / 64 * 64;
    }
    file = in_file ? get(whole) : NULL;
    if (file)
        memset(file, 0, whole);
    for (size_t b = 0; b < BANDS; b++) {
        for (int i = 0; i < 2; i++)
            bands[b].memory[i] = place_section(bands[b].memory[i], bands[b].sizes[i], &end);
        bands[b].sorted.keys = bands[b].memory[0];
        bands[b].sorted.numbers = bands[b].memory[1];
        bands[b].sorted.blocks = file ? &blocks : NULL;
        sorted[b] = bands[b].sorted;
    }
    sketches = get(size);
    for (size_t i = 0; i < count * k; i++) {
        memset(sketches + i * width, 0, width);
        sketches[i * width] = (uint8_t)below(3);
    }
    sketches = place_section(sketches, size, &end);
    removed = get((count + 7) / 8);
    for (size_t i = 0; i < (count + 7) / 8; i++)
        removed[i] = (uint8_t)(below(256) & below(256));
    segment = (lsh_segment){
        sorted, BANDS, count, removed, sketches, k, width, file ? &blocks : NULL, lsh_kernels_find(NULL)};
    blocks = (lsh_blocks){file, whole, NULL, NULL, lsh_murmur3_x64_128};
}

/* Give the file checksums of its present content. */
static void sum_file(void)
{
    const size_t count = (blocks.size + LSH_BLOCK - 1) / LSH_BLOCK;
    if (!file)
        return;
    uint8_t *sums = get(8 * count), *checked = get(count);
    lsh_block_sums(file, blocks.size, lsh_murmur3_x64_128, sums);
    memset(checked, 0, count);
    free((void *)(uintptr_t)blocks.sums);
    free(blocks.checked);
    blocks.sums = sums;
    blocks.checked = checked;
}

#ifndef LSH_FUZZ
static void drop_segment(void)
{
    for (size_t b = 0; b < BANDS; b++) {
        free(bands[b].keys);
        free(bands[b].numbers);
        for (int i = 0; i < 2 && !file; i++)
            free(bands[b].memory[i]);
    }
    if (!file)
        free(sketches);
    free(file);
    free(removed);
    free((void *)(uintptr_t)blocks.sums);
    free(blocks.checked);
}
#endif

/* ---- wrong content ---- */

static void change_bytes(void)
{
    for (size_t changes = 1 + below(8); changes--;) {
        const band *b = bands + below(BANDS);
        const size_t part = below(3);
        if (b->sizes[part])
            b->memory[part][below(b->sizes[part])] = (uint8_t)(below(2) ? 255 * below(2) : below(256));
    }
}

/* ---- search ---- */

static size_t equal_components(size_t document, const uint8_t *row)
{
    const uint8_t *other = sketches + document * segment.k * segment.width;
    size_t equal = 0;
    for (size_t c = 0; c < segment.k; c++) {
        uint8_t differs = 0; /* no memcmp, which libFuzzer would observe */
        for (size_t i = 0; i < segment.width; i++)
            differs |= *other++ ^ *row++;
        equal += !differs;
    }
    return equal;
}

/* Compare the matches of a query with all documents: whether each belongs there, and, unless content is wrong, whether
 * none is missing. */
static void compare(const lsh_search *search, size_t query, const lsh_matches *found, int is_right)
{
    const size_t begin = (size_t)found->bounds[query], end = (size_t)found->bounds[query + 1];
    const uint8_t *row = search->rows + query * segment.k * segment.width;
    size_t at = begin, worst = SIZE_MAX;
    CHECK(begin <= end && end <= found->count && end - begin <= search->most);
    for (size_t i = begin; i < end; i++)
        worst = found->equal[i] < worst ? found->equal[i] : worst;
    for (size_t d = 0; d < segment.documents; d++) {
        int shares = 0;
        for (size_t b = 0; b < BANDS; b++)
            shares |= bands[b].keys[d] == search->keys[b * search->queries + query];
        const size_t equal = equal_components(d, row);
        const int matches = equal >= search->least && !(removed[d / 8] >> d % 8 & 1);
        if (at < end && found->numbers[at] == d) {
            CHECK(matches && (shares || !is_right) && found->equal[at] == equal);
            at++;
        } else if (is_right && matches && shares) {
            CHECK(end - begin == search->most && equal <= worst);
            for (size_t i = at; i < end && equal == worst; i++)
                CHECK(found->equal[i] > worst);
        }
    }
    CHECK(at == end);
}

static void use_search(int is_right)
{
    static uint64_t keys[BANDS * MOST_QUERIES];
    static int64_t bounds[MOST_QUERIES + 1];
    lsh_search *search = calloc(1, sizeof *search);
    const size_t queries = below(MOST_QUERIES + 1), size = segment.k * segment.width;
    uint8_t *rows = get(queries * size);
    CHECK(search);
    for (size_t i = 0; i < BANDS * queries; i++) {
        const band *b = bands + i / queries;
        keys[i] = segment.documents && below(4) ? b->keys[below(segment.documents)] : (uint64_t)below(SIZE_MAX);
    }
    for (size_t q = 0; q < queries; q++)
        if (segment.documents)
            memcpy(rows + q * size, sketches + below(segment.documents) * size, size);
        else
            memset(rows + q * size, 0, size);
    search->keys = keys;
    search->queries = queries;
    search->rows = rows;
    search->least = below(segment.k + 2);
    search->most = below(2) ? SIZE_MAX : 1 + below(below(2) ? 5 : 1000);
    search->runs = get(queries * BANDS * sizeof *search->runs);
    search->tallies = get((segment.k + 1) * sizeof *search->tallies);
    lsh_matches found = {.bounds = bounds};
    enum lsh_fault fault = LSH_SOUND;
    bounds[0] = 0;
    while (search->query < queries && !fault) {
        if (found.capacity - found.count < LSH_PIECE) {
            found.capacity = found.count + LSH_PIECE + below(3);
            found.numbers = realloc(found.numbers, found.capacity * sizeof *found.numbers);
            found.equal = realloc(found.equal, found.capacity * sizeof *found.equal);
        }
        fault = lsh_search_next(&segment, search, &found);
    }
    CHECK(!fault || !is_right);
    for (size_t q = 0; q < search->query; q++)
        compare(search, q, &found, is_right);
    free(search->runs);
    free(search->tallies);
    free(search);
    free(rows);
    free(found.numbers);
    free(found.equal);
}

/* ---- merge: of all bands, each with its own new numbers, one after the other or in turn ---- */

static enum lsh_fault merge(lsh_merge_part *parts, lsh_sorted_output *out)
{
    lsh_merge state = {.parts = parts, .num_parts = BANDS, .share = 1 + below(100)};
    enum lsh_fault fault = LSH_SOUND;
    state.records = get(BANDS * state.share * sizeof *state.records);
    state.other = get(BANDS * state.share * sizeof *state.other);
    for (size_t b = 0; b < BANDS; b++)
        state.left += parts[b].sorted->count;
    while (!fault && state.left)
        fault = lsh_merge_next(&state, out);
    free(state.records);
    free(state.other);
    return fault;
}

static void use_merge(int is_right)
{
    const size_t count = segment.documents;
    const int in_turn = below(2) > 0;
    size_t kept = 0, expected = 0, block;
    lsh_merge_part parts[BANDS];
    uint32_t *renumbered = get(BANDS * count * sizeof *renumbered);
    enum lsh_fault fault = LSH_SOUND;
    for (size_t i = 0; i < BANDS * count; i++)
        renumbered[in_turn ? i % BANDS * count + i / BANDS : i] = below(4) ? (uint32_t)expected++ : LSH_NOTHING;
    for (size_t b = 0; b < BANDS && !fault; b++) {
        parts[b] = (lsh_merge_part){.sorted = &bands[b].sorted, .renumbered = renumbered + b * count, .documents = count};
        while (!fault && parts[b].at < count)
            fault = lsh_merge_count(parts + b, &kept, &block);
        parts[b].at = 0;
    }
    CHECK(fault ? !is_right : kept == expected || !is_right);
    if (!fault) {
        uint8_t *out_keys = get(8 * kept), *out_numbers = get(4 * kept);
        lsh_sorted_output out = {out_keys, out_numbers, kept, 0};
        if (!is_right && !below(4))
            change_bytes(); /* after they were counted */
        fault = merge(parts, &out);
        CHECK(!fault || !is_right);
        const lsh_sorted result = {out_keys, out_numbers, out.count, NULL};
        if (!fault)
            CHECK(lsh_check_keys(&result, SIZE_MAX, 0, out.count, &block) == LSH_SOUND);
        for (size_t i = 0; i < BANDS * count && is_right; i += 1 + count / 1000) { /* of many documents, some */
            lsh_run run;
            int is_found = 0;
            CHECK(lsh_find_keys(&result, &bands[i / count].keys[i % count], 1, &run, &block) == LSH_SOUND);
            for (size_t at = run.start; at < run.stop; at++)
                is_found |= lsh_load32(out_numbers + 4 * at) == renumbered[i];
            CHECK(is_found == (renumbered[i] != LSH_NOTHING));
        }
        free(out_keys);
        free(out_numbers);
    }
    free(renumbered);
}

static void use(int is_right)
{
    size_t block;
    sum_file();
    for (size_t b = 0; b < BANDS; b++) {
        const enum lsh_fault fault = lsh_check_keys(&bands[b].sorted, segment.documents, 0, segment.documents, &block);
        CHECK(!fault || !is_right);
    }
    use_search(is_right);
    use_merge(is_right);
}

#ifdef LSH_FUZZ
/* ---- the segments that inputs change ---- */

typedef struct {
    band bands[BANDS];
    lsh_sorted sorted[BANDS];
    lsh_segment segment;
    lsh_blocks blocks;
    uint8_t *file, *sketches, *removed;
    uint8_t *right[BANDS][2]; /* copies of the sections */
} shape;

static shape shapes[64];

static void make_shape(shape *s)
{
    make_segment();
    use(1);
    s->segment = segment;
    s->file = file;
    s->sketches = sketches;
    s->removed = removed;
    memcpy(s->bands, bands, sizeof bands);
    memcpy(s->sorted, sorted, sizeof sorted);
    for (size_t i = 0; i < BANDS * 2; i++) {
        const band *b = bands + i / 2;
        s->right[i / 2][i % 2] = memcpy(get(b->sizes[i % 2]), b->memory[i % 2], b->sizes[i % 2]);
    }
    s->blocks = blocks;
}

static void load_shape(const shape *s)
{
    segment = s->segment;
    file = s->file;
    sketches = s->sketches;
    removed = s->removed;
    memcpy(bands, s->bands, sizeof bands);
    memcpy(sorted, s->sorted, sizeof sorted);
    for (size_t i = 0; i < BANDS * 2; i++)
        memcpy(bands[i / 2].memory[i % 2], s->right[i / 2][i % 2], bands[i / 2].sizes[i % 2]);
    blocks = s->blocks;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t count = sizeof shapes / sizeof *shapes;
    if (!shapes[0].removed)
        for (size_t i = 0; i < count; i++)
            make_shape(shapes + i);
    input = data;
    input_left = size;
    shape *s = shapes + below(count);
    load_shape(s);
    change_bytes();
    use(0);
    s->blocks = blocks; /* its checksums are new */
    input = NULL;
    return 0;
}

#else
static void run_round(void)
{
    make_segment();
    use(1);
    for (size_t again = below(4); again--;) {
        change_bytes();
        use(0);
    }
    drop_segment();
}

int main(int argc, char **argv)
{
    const size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 0) * 2 + 1;
    for (size_t i = 0; i < rounds; i++)
        run_round();
    printf("%zu rounds: as expected\n", rounds);
    return 0;
}
#endif
