/* Reading and writing at a place of a file, for the bindings (floor 1): pread and pwrite, which Windows lacks.
 *
 * There the position of the file is moved, so a caller must not use a file in two threads at the same time; the lock of
 * _positions.py is for that. All three return how many bytes were read or written, maybe fewer, or -1 and set errno. */
#ifndef LSH_POSITIONS_H
#define LSH_POSITIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#include <io.h>
#include <stdio.h>

#define LSH_MOST_AT_ONCE ((size_t)1 << 30)

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

static inline ptrdiff_t lsh_write_at(int file, const void *from, size_t size, int64_t place)
{
    return _lseeki64(file, place, SEEK_SET) < 0 ? -1 : lsh_write_on(file, from, size);
}
#else
#include <unistd.h>

static inline ptrdiff_t lsh_read_at(int file, void *to, size_t size, int64_t place)
{
    return pread(file, to, size, (off_t)place);
}

static inline ptrdiff_t lsh_write_on(int file, const void *from, size_t size)
{
    return write(file, from, size);
}

static inline ptrdiff_t lsh_write_at(int file, const void *from, size_t size, int64_t place)
{
    return pwrite(file, from, size, (off_t)place);
}
#endif

#endif
