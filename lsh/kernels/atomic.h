/* Reading and writing memory that threads share, without a lock.
 *
 * `load` sees what another thread wrote before the `store` of the value that it reads. `exchange` and `replace` do
 * both at once. A thread that calls `fence` between its store and a load sees the store of a thread that calls it
 * likewise, or is seen by it (C11, 7.17). Compilers that are not GNU's or Clang get the interlocked functions of
 * Windows, which are at least as strict. */
#ifndef LSH_ATOMIC_H
#define LSH_ATOMIC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)

static inline uint32_t lsh_load_32(const uint32_t *from)
{
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static inline void lsh_store_32(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static inline size_t lsh_load_size(const size_t *from)
{
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static inline void lsh_store_size(size_t *to, size_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static inline uint32_t lsh_exchange_32(uint32_t *at, uint32_t value)
{
    return __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL);
}

/* Write `value` if `old` is there. */
static inline void lsh_replace_32(uint32_t *at, uint32_t old, uint32_t value)
{
    __atomic_compare_exchange_n(at, &old, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline void lsh_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#else

#include <windows.h>

static inline uint32_t lsh_load_32(const uint32_t *from)
{
    return (uint32_t) InterlockedCompareExchange((volatile LONG *) from, 0, 0);
}

static inline void lsh_store_32(uint32_t *to, uint32_t value)
{
    InterlockedExchange((volatile LONG *) to, (LONG) value);
}

static inline size_t lsh_load_size(const size_t *from)
{
    return (size_t) InterlockedCompareExchangePointer((PVOID volatile *) from, NULL, NULL);
}

static inline void lsh_store_size(size_t *to, size_t value)
{
    InterlockedExchangePointer((PVOID volatile *) to, (PVOID) value);
}

static inline uint32_t lsh_exchange_32(uint32_t *at, uint32_t value)
{
    return (uint32_t) InterlockedExchange((volatile LONG *) at, (LONG) value);
}

static inline void lsh_replace_32(uint32_t *at, uint32_t old, uint32_t value)
{
    InterlockedCompareExchange((volatile LONG *) at, (LONG) value, (LONG) old);
}

static inline void lsh_fence(void)
{
    MemoryBarrier();
}

#endif
#endif
