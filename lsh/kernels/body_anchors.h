/* The anchors of kernels.h; part of body.h.
 *
 * Winnowing (Schleimer, Wilkerson and Aiken 2003) over the values of LSH_GRAM bytes: of each window, the leftmost of the least
 * values. The walk looks for a smaller value than that of its anchor among the grams that enter the window; where the anchor
 * leaves the window first, it looks at the whole window again, unless a gram of the same value is known, as in a text that repeats
 * a few characters. A gram is looked at about twice, whatever the window,
 * but in a text that is written for it: ascending values, each of which leaves when a larger one is all that is left.
 */
#define GRAM_ODD 0x9E3779B1u

static uint32_t gram_value(const uint8_t *p)
{
    return lsh_load32(p) * GRAM_ODD;
}

static inline V gram_values(const uint8_t *p)
{
    return v_mul(v_words(p), v_one(GRAM_ODD));
}

/* Up to where whole vectors of grams can be read, from `from` on and before `to`. Four lanes without an instruction that multiplies
 * them are slower than single words. */
static size_t vectors_end(const lsh_anchor_walk *walk, size_t from, size_t to)
{
    if (!GRAMS_IN_VECTORS)
        return from;
    const size_t readable = walk->length > READ_ON ? walk->length - READ_ON : 0;
    const size_t end = to < readable ? to : readable;
    return end > from ? from + (end - from) / LANES_32 * LANES_32 : from;
}

/* The first gram from `from` on and before `to` with a smaller value; `to` if there is none. */
static size_t find_less(const lsh_anchor_walk *walk, size_t from, size_t to, uint32_t value)
{
    const V values = v_one(value);
    const size_t end = vectors_end(walk, from, to);
    for (; from < end; from += LANES_32) {
        const uint32_t less = v_less(gram_values(walk->text + from), values);
        if (less)
            return from + lsh_lowest_bit(less);
    }
    while (from < to && gram_value(walk->text + from) >= value)
        from++;
    return from;
}

static uint32_t least_value(const lsh_anchor_walk *walk, size_t from, size_t to)
{
    uint32_t lanes[LANES_32], least = UINT32_MAX;
    V values = v_one(UINT32_MAX);
    const size_t end = vectors_end(walk, from, to);
    for (; from < end; from += LANES_32)
        values = v_min_u(values, gram_values(walk->text + from));
    v_store(lanes, values);
    for (size_t i = 0; i < LANES_32; i++)
        least = lanes[i] < least ? lanes[i] : least;
    for (; from < to; from++) {
        const uint32_t value = gram_value(walk->text + from);
        least = value < least ? value : least;
    }
    return least;
}

/* The first gram from `from` on and before `to` with this value, where none has a smaller one; 0 if there is none. */
static size_t find_tie(const lsh_anchor_walk *walk, size_t from, size_t to, uint32_t value)
{
    const size_t at = value == UINT32_MAX ? to : find_less(walk, from, to, value + 1);
    return at < to ? at : 0;
}

/* Let a gram be the anchor of the windows from `first` on; `tie` is the next one with its value that is known, or 0. */
static lsh_anchor set_anchor(lsh_anchor_walk *walk, size_t place, uint32_t value, size_t first, size_t tie)
{
    const lsh_anchor anchor = {place, first};
    walk->place = place;
    walk->value = value;
    walk->tie = tie;
    return anchor;
}

/* The anchor of the window from `first` on, of all its grams. */
static lsh_anchor search_window(lsh_anchor_walk *walk, size_t first, size_t grams)
{
    const size_t end = first + grams;
    const uint32_t least = least_value(walk, first, end);
    const size_t place = least == UINT32_MAX ? first : find_less(walk, first, end, least + 1);
    walk->next = end;
    return set_anchor(walk, place, least, first, find_tie(walk, place + 1, end, least));
}

/* The anchor leaves the window, into which one more gram comes. */
static lsh_anchor leave(lsh_anchor_walk *walk, size_t grams)
{
    const size_t first = walk->place + 1, entering = walk->place + grams, tie = walk->tie;
    const uint32_t value = gram_value(walk->text + entering);
    if (value >= walk->value && tie == 0)
        return search_window(walk, first, grams);
    walk->next = entering + 1;
    if (value < walk->value)
        return set_anchor(walk, entering, value, first, 0);
    return set_anchor(walk, tie, walk->value, first, find_tie(walk, tie + 1, walk->next, walk->value));
}

static size_t LSH_SYMBOL(lsh_next_anchors)(lsh_anchor_walk *walk, lsh_anchor *found, size_t capacity)
{
    size_t count = 0;
    if (walk->length < walk->window)
        return 0;
    const size_t grams = walk->window - LSH_GRAM + 1, all = walk->length - LSH_GRAM + 1;
    if (walk->next == 0)
        found[count++] = search_window(walk, 0, grams);
    while (count < capacity && walk->next < all) {
        const size_t leaves = walk->place + grams, end = leaves < all ? leaves : all;
        const uint32_t bound = walk->tie || walk->value == UINT32_MAX ? walk->value : walk->value + 1;
        const size_t at = find_less(walk, walk->next, end, bound);
        if (at < end) {
            const uint32_t value = gram_value(walk->text + at);
            walk->next = at + 1;
            if (value == walk->value)
                walk->tie = at;
            else
                found[count++] = set_anchor(walk, at, value, at - grams + 1, 0);
        } else if (end < all) {
            found[count++] = leave(walk, grams);
        } else {
            walk->next = all;
        }
    }
    return count;
}
