/* Reading and writing memory that threads share, without a lock.
 *
 * `load` sees what another thread wrote before the `store` of the value that it reads. `exchange` and `replace` do
 * both at once. A thread that calls `fence` between its store and a load sees the store of a thread that calls it
 * likewise, or is seen by it (C11, 7.17). `load_8` and `store_8` are for flags whose order does not matter.
 * Microsoft's compiler gets its interlocked functions, which are at least as strict. */
#ifndef LSH_ATOMIC_H
#define LSH_ATOMIC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)

static inline uint8_t lsh_load_8(const uint8_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

static inline void lsh_store_8(uint8_t *to, uint8_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

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

long _InterlockedExchange(long volatile *, long);
long _InterlockedCompareExchange(long volatile *, long, long);
void *_InterlockedExchangePointer(void *volatile *, void *);
void *_InterlockedCompareExchangePointer(void *volatile *, void *, void *);
#pragma intrinsic(_InterlockedExchange, _InterlockedCompareExchange)
#pragma intrinsic(_InterlockedExchangePointer, _InterlockedCompareExchangePointer)

static inline uint8_t lsh_load_8(const uint8_t *from)
{
    return *(const volatile uint8_t *) from;
}

static inline void lsh_store_8(uint8_t *to, uint8_t value)
{
    *(volatile uint8_t *) to = value;
}

static inline uint32_t lsh_load_32(const uint32_t *from)
{
    return (uint32_t) _InterlockedCompareExchange((long volatile *) from, 0, 0);
}

static inline void lsh_store_32(uint32_t *to, uint32_t value)
{
    _InterlockedExchange((long volatile *) to, (long) value);
}

static inline size_t lsh_load_size(const size_t *from)
{
    return (size_t) _InterlockedCompareExchangePointer((void *volatile *) from, NULL, NULL);
}

static inline void lsh_store_size(size_t *to, size_t value)
{
    _InterlockedExchangePointer((void *volatile *) to, (void *) value);
}

static inline uint32_t lsh_exchange_32(uint32_t *at, uint32_t value)
{
    return (uint32_t) _InterlockedExchange((long volatile *) at, (long) value);
}

static inline void lsh_replace_32(uint32_t *at, uint32_t old, uint32_t value)
{
    _InterlockedCompareExchange((long volatile *) at, (long) value, (long) old);
}

static inline void lsh_fence(void)
{
    long place = 0;
    _InterlockedExchange(&place, 1);
}

#endif
#endif
