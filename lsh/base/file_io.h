/* Reading, writing and mapping of parts of files for the bindings (floor 1): pread, writev and mmap, which Windows lacks.
 *
 * On Windows, reading moves the position of the file, so a caller must not use a file in two threads at the same time; the
 * lock of base/file_io.py is for that. There lsh_map fails, and its callers read the file.
 *
 * Functions that read or write return how many bytes, maybe fewer than asked for, or -1 and set errno. */
#ifndef LSH_POSITIONS_H
#define LSH_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#include <io.h>
#include <stdio.h>

#define LSH_MOST_AT_ONCE ((size_t)1 << 30)

typedef struct {
    void *iov_base;
    size_t iov_len;
} lsh_piece;

static inline ptrdiff_t lsh_read_at(int file, void *to, size_t size, int64_t place)
{
    if (_lseeki64(file, place, SEEK_SET) < 0)
        return -1;
    return _read(file, to, (unsigned)(size < LSH_MOST_AT_ONCE ? size : LSH_MOST_AT_ONCE));
}

static inline ptrdiff_t lsh_write_on(int file, const void *from, size_t size)
{
    return _write(file, from, (unsigned)(size < LSH_MOST_AT_ONCE ? size : LSH_MOST_AT_ONCE));
}

static inline ptrdiff_t lsh_write_pieces(int file, const lsh_piece *pieces, int count)
{
    return count > 0 ? lsh_write_on(file, pieces->iov_base, pieces->iov_len) : 0;
}

static inline uint8_t *lsh_map(int file, int64_t start, size_t length, int flags)
{
    (void)file, (void)start, (void)length, (void)flags;
    return NULL;
}

static inline void lsh_unmap(uint8_t *mapped, size_t length) { (void)mapped, (void)length; }
#else
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct iovec lsh_piece;

static inline ptrdiff_t lsh_read_at(int file, void *to, size_t size, int64_t place)
{
    return pread(file, to, size, (off_t)place);
}

static inline ptrdiff_t lsh_write_on(int file, const void *from, size_t size)
{
    return write(file, from, size);
}

static inline ptrdiff_t lsh_write_pieces(int file, const lsh_piece *pieces, int count)
{
    return writev(file, pieces, count);
}

/* Map bytes of a file that has so many, from the start of a page on; NULL if it has fewer or cannot be mapped. */
static inline uint8_t *lsh_map(int file, int64_t start, size_t length, int flags)
{
    char last; /* not fstat: in glibc 2.33 and newer it is a new symbol, which a wheel for manylinux_2_28 must not need */
    if (length == 0 || pread(file, &last, 1, (off_t)(start + (int64_t)length - 1)) != 1)
        return NULL;
    void *mapped = mmap(NULL, length, PROT_READ, MAP_SHARED | flags, file, (off_t)start);
    return mapped == MAP_FAILED ? NULL : (uint8_t *)mapped;
}

static inline void lsh_unmap(uint8_t *mapped, size_t length) { munmap(mapped, length); }
#endif

#endif
