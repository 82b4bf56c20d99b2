/* Lines, and the cells of separated lines and of CSV (RFC 4180). See kernels.h.
 *
 * Accepts unambiguous input only: malformed input ends the reading, and is left to a reader that can report the error. A cell is not copied unless it has doubled quotes, which are written to `out` as one.
 */
#include <string.h>

#include "kernels.h"

enum { COUNTED = 128 }; /* bytes of a step of the count of newlines, at most 255 */

size_t lsh_count_lines(const uint8_t *block, size_t size)
{
    size_t lines = size && block[size - 1] != '\n', i = 0, j;
    for (; size - i >= COUNTED; i += COUNTED) {
        uint8_t newlines = 0; /* in a byte, so that vectors count many at once */
        for (j = i; j < i + COUNTED; j++)
            newlines = (uint8_t)(newlines + (block[j] == '\n'));
        lines += newlines;
    }
    for (; i < size; i++)
        lines += block[i] == '\n';
    return lines;
}

/* The row that is being read: which of its cells are wanted. */
typedef struct {
    const size_t *places;
    size_t num_places;
    size_t count; /* of this row so far */
    lsh_field *found;
} row;

static void add_cell(row *r, const uint8_t *bytes, size_t length)
{
    size_t i;
    for (i = 0; i < r->num_places; i++)
        if (r->places[i] == r->count)
            r->found[i] = (lsh_field){LSH_STRING, {bytes, length}};
    r->count++;
}

size_t lsh_read_lines(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                      size_t min_cells, size_t max_cells, lsh_field *found, lsh_span *spans)
{
    const uint8_t *at = block, *const end = block + size, *stop, *newline, *cell;
    size_t rows = 0;
    while (at < end) {
        const uint8_t *const start = at;
        row r = {places, num_places, 0, found + rows * num_places};
        newline = memchr(at, '\n', (size_t)(end - at));
        stop = newline ? newline : end;
        stop -= stop > at && stop[-1] == '\r';
        while ((cell = memchr(at, separator, (size_t)(stop - at)))) {
            add_cell(&r, at, (size_t)(cell - at));
            at = cell + 1;
        }
        add_cell(&r, at, (size_t)(stop - at));
        if (r.count < min_cells || r.count > max_cells)
            return SIZE_MAX;
        at = newline ? newline + 1 : end;
        spans[rows++] = (lsh_span){(size_t)(start - block), (size_t)(at - start)};
    }
    return rows;
}

/* The end of a cell without quotes: a separator, a newline or the end of the block; NULL if it is malformed. A
 * carriage return belongs to the end of its line. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *end, uint8_t separator)
{
    for (; at < end; at++) {
        if (*at == separator || *at == '\n')
            return at;
        if (*at == '\r')
            return end - at > 1 && at[1] == '\n' ? at : NULL;
        if (*at == '"')
            return NULL;
    }
    return end;
}

/* The quote that ends a cell, from behind the one that begins it; NULL if it is not in the block. */
static const uint8_t *quoted_end(const uint8_t *at, const uint8_t *end, int *is_doubled)
{
    *is_doubled = 0;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        if (end - at < 2 || at[1] != '"')
            return at;
        *is_doubled = 1;
        at += 2;
    }
    return NULL;
}

/* Copy a cell with each two quotes as one; returns its length. */
static size_t undouble(const uint8_t *at, const uint8_t *end, uint8_t *out)
{
    const uint8_t *const start = out, *quote;
    while ((quote = memchr(at, '"', (size_t)(end - at)))) {
        memcpy(out, at, (size_t)(quote + 1 - at));
        out += quote + 1 - at;
        at = quote + 2;
    }
    memcpy(out, at, (size_t)(end - at));
    return (size_t)(out - start) + (size_t)(end - at);
}

size_t lsh_read_csv(const uint8_t *block, size_t size, uint8_t separator, const size_t *places, size_t num_places,
                    size_t min_cells, size_t max_cells, uint8_t *out, lsh_field *found, lsh_span *spans, size_t *used)
{
    const uint8_t *at = block, *const end = block + size, *stop;
    size_t rows = 0, length;
    int is_doubled;
    *used = 0;
    if (memchr(block, 0, size))
        return SIZE_MAX;
    while (at < end) {
        const uint8_t *const start = at;
        row r = {places, num_places, 0, found + rows * num_places};
        if (*at == '\n' || (*at == '\r' && end - at > 1 && at[1] == '\n')) { /* no record */
            at += 1 + (*at == '\r');
            *used = (size_t)(at - block);
            continue;
        }
        for (;;) {
            if (at < end && *at == '"') {
                stop = quoted_end(at + 1, end, &is_doubled);
                if (!stop)
                    return rows;
                if (is_doubled) {
                    length = undouble(at + 1, stop, out);
                    add_cell(&r, out, length);
                    out += length;
                } else {
                    add_cell(&r, at + 1, (size_t)(stop - at - 1));
                }
                at = stop + 1;
                if (plain_end(at, end, separator) != at) /* something behind the quote */
                    return SIZE_MAX;
            } else {
                stop = plain_end(at, end, separator);
                if (!stop)
                    return SIZE_MAX;
                add_cell(&r, at, (size_t)(stop - at));
                at = stop;
            }
            if (at == end || *at != separator)
                break;
            at++;
        }
        if (at < end)
            at += 1 + (*at == '\r');
        if (r.count < min_cells || r.count > max_cells)
            return SIZE_MAX;
        spans[rows++] = (lsh_span){(size_t)(start - block), (size_t)(at - start)};
        *used = (size_t)(at - block);
    }
    return rows;
}
