// Informs the thread sanitizer of what happens inside libraries that were not built with it.
//
// Linked into the thread sanitizer's build of tools/test, and into no other one: what is tested is the
// code that ships. `Tests/SanitizerTests` shows that with it a real race is
// reported and what is guarded is not. The sanitizer knows libc's mutexes and condition variables,
// Dispatch (its runtime has interceptors for both), atomics (compiled into their users) and most of tasks
// (their runtime calls the hooks `_swift_tsan_acquire` and `_swift_tsan_release`). It does not know the
// three below. Each note is exactly what the runtime guarantees, so none hides a race.
//
// Calls from our code reach the functions here because the executable comes first in the order of
// symbols; those of the libraries are found behind them. Should a toolchain rename one, its note is
// missing and false reports appear: it cannot fail in silence.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

// What is written here is no access of the program.
#define UNSEEN __attribute__((disable_sanitizer_instrumentation))
/// The same function in the library that has it.
#define NEXT(name)                                   \
  ({                                                 \
    static _Atomic(void *) next;                     \
    if (!next) next = dlsym(RTLD_NEXT, name);        \
    (void *)next;                                    \
  })

// MARK: Synchronization.Mutex
//
// The way without contention is compiled into the caller, and its atomics are seen. Where two threads
// meet, the library spins or asks the kernel: unseen, every state guarded by a mutex looks unguarded.

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT bool try_lock_slow(SELF void *mutex) __asm__(TRY_LOCK);
SWIFT void unlock_slow(SELF void *mutex) __asm__(UNLOCK);

UNSEEN SWIFT void lock_slow(uint32_t thread, SELF void *mutex) {
  ((SWIFT void (*)(uint32_t, SELF void *))NEXT(LOCK))(thread, mutex);
  __tsan_acquire(mutex);
}

UNSEEN SWIFT bool try_lock_slow(SELF void *mutex) {
  bool locked = ((SWIFT bool (*)(SELF void *))NEXT(TRY_LOCK))(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}

UNSEEN SWIFT void unlock_slow(SELF void *mutex) {
  __tsan_release(mutex);
  ((SWIFT void (*)(SELF void *))NEXT(UNLOCK))(mutex);
}

// MARK: Reference counts
//
// Copy on write depends on them: a thread that is the only owner may write in place, since the
// others read before they released it. Releasing is a release of what the object holds, being the only
// owner, or the last one, an acquire. Noted where an object is shared, and only there: one that never
// is needs no note.

//
// Two threads that release an object at once must not both find the other's reference there and note a
// release: the one that is then the last would lack the acquire, and what the object refers to would be
// given back without what the other one read before. So noting and releasing are one step where an object is
// shared. It is no lock of the program, and the sanitizer does not see it. The last owner is alone, and what
// it releases is freed outside of it.

size_t swift_retainCount(void *object);

enum { LOCKS = 1024 };
static _Atomic(bool) locks[LOCKS];

UNSEEN static _Atomic(bool) *lock_of(void *object) {
  return &locks[((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 54];
}

/// Notes that references are given back, and gives them back by `release` where the object has others.
/// Returns whether that is still to be done.
UNSEEN static bool is_last(void *object, uint32_t count, void (*release)(void *, uint32_t), void *argument) {
  // As the runtime does: no object, or one that is not counted.
  if ((intptr_t)object <= 0) return true;
  if (swift_retainCount(object) > count) {
    _Atomic(bool) *lock = lock_of(object);
    while (atomic_exchange_explicit(lock, true, memory_order_acquire)) sched_yield();
    bool is_shared = swift_retainCount(object) > count;
    if (is_shared) {
      __tsan_release(object);
      release(argument, count);
    }
    atomic_store_explicit(lock, false, memory_order_release);
    if (is_shared) return false;
  }
  __tsan_acquire(object);
  return true;
}

/// The object in a reference whose spare bits a string or a dictionary uses; none where it is none.
UNSEEN static void *plain(void *object) {
  if ((intptr_t)object <= 0) return NULL;
  return (void *)((uintptr_t)object & 0x00fffffffffffff8);
}

UNSEEN static void release_one(void *object, uint32_t count) {
  ((void (*)(void *))NEXT("swift_release"))(object);
}

UNSEEN static void release_some(void *object, uint32_t count) {
  ((void (*)(void *, uint32_t))NEXT("swift_release_n"))(object, count);
}

UNSEEN static void release_bridged(void *object, uint32_t count) {
  ((void (*)(void *))NEXT("swift_bridgeObjectRelease"))(object);
}

UNSEEN static void release_some_bridged(void *object, uint32_t count) {
  ((void (*)(void *, int))NEXT("swift_bridgeObjectRelease_n"))(object, (int)count);
}

UNSEEN void swift_release(void *object) {
  if (is_last(object, 1, release_one, object)) release_one(object, 1);
}

UNSEEN void swift_release_n(void *object, uint32_t count) {
  if (is_last(object, count, release_some, object)) release_some(object, count);
}

UNSEEN void swift_bridgeObjectRelease(void *object) {
  if (is_last(plain(object), 1, release_bridged, object)) release_bridged(object, 1);
}

UNSEEN void swift_bridgeObjectRelease_n(void *object, int count) {
  if (is_last(plain(object), (uint32_t)count, release_some_bridged, object))
    release_some_bridged(object, (uint32_t)count);
}

#define UNIQUE(name)                                            \
  UNSEEN bool name(void *object) {                              \
    bool unique = ((bool (*)(void *))NEXT(#name))(object);      \
    if (unique) __tsan_acquire(plain(object));                  \
    return unique;                                              \
  }
UNIQUE(swift_isUniquelyReferenced)
UNIQUE(swift_isUniquelyReferenced_native)
UNIQUE(swift_isUniquelyReferenced_nonNull)
UNIQUE(swift_isUniquelyReferenced_nonNull_native)
UNIQUE(swift_isUniquelyReferencedNonObjC)
UNIQUE(swift_isUniquelyReferencedNonObjC_nonNull)
UNIQUE(swift_isUniquelyReferencedNonObjC_nonNull_bridgeObject)
UNIQUE(swift_isUniquelyReferenced_nonNull_bridgeObject)

// MARK: Continuations
//
// The runtime notes a resumption, and that a task continues which had stopped. Where the resumption comes
// before the task waits, it continues at once, and nothing is noted. So each continues through `go_on`.

#define ASYNC __attribute__((swiftasynccall))
#define CONTEXT __attribute__((swift_async_context))

struct async_context {
  struct async_context *parent;
  ASYNC void (*resume)(CONTEXT struct async_context *);
};

void *swift_task_getCurrent(void);
void *swift_continuation_init(struct async_context *context, size_t flags);

UNSEEN static ASYNC void go_on(CONTEXT struct async_context *context) {
  struct async_context *own = context->parent;
  *context = *own;
  free(own);
  __tsan_acquire(swift_task_getCurrent());
  __attribute__((musttail)) return context->resume(context);
}

UNSEEN void *swift_continuation_init(struct async_context *context, size_t flags) {
  // Only the code that continues reads where it came from: until then there is room for this.
  struct async_context *own = malloc(sizeof *own);
  *own = *context;
  context->parent = own;
  context->resume = go_on;
  return ((void *(*)(struct async_context *, size_t))NEXT("swift_continuation_init"))(context, flags);
}
