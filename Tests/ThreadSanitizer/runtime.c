// Informs the thread sanitizer of what happens inside libraries that were not built with it.
//
// Linked into the thread sanitizer's build of tools/test, and into no other one: what is tested is the
// code that ships. `Tests/SanitizerTests` shows that with it a real race is reported and what is guarded is
// not. The sanitizer knows libc's mutexes and condition variables, Dispatch (its runtime has interceptors for
// both), atomics (compiled into their users) and most of tasks (their runtime calls the hooks
// `_swift_tsan_acquire` and `_swift_tsan_release`). It does not know the three below. Each note is exactly what
// the runtime guarantees, so none hides a race.
//
// Calls from our code reach the functions here because the executable comes first in the order of
// symbols; those of the libraries are found behind them. Should a toolchain rename one, its note is missing and
// false reports appear: it cannot fail in silence.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
// The way without contention is compiled into the caller, and its atomics are seen. If two threads
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
// owner, or the last one, an acquire. Noted if an object is shared, and only there: one that never
// is needs no note.
//
// Two threads that release an object at once must not both find the other's reference there and note a
// release: the one that is then the last would lack the acquire, and what the object refers to would be
// given back without what the other one read before. So noting and releasing are one step if an object is
// shared. It is no lock of the program, and the sanitizer does not see it. The last owner is alone, and what
// it releases is freed outside of it.

size_t swift_retainCount(void *object);

enum { LOCKS = 1024 };
static _Atomic(bool) locks[LOCKS];

UNSEEN static _Atomic(bool) *lock_of(void *object) {
  return &locks[((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 54];
}

// The runtime calls its own functions without the order of symbols, for the elements of an array among others:
// so the first instructions of its functions are replaced by a jump to these here. The variables that it has
// for instruments are not used for that: with them, its `swift_retain` takes a short string for an object.

// What the functions do, as they are in the library.
extern void (*_swift_release)(void *object);
extern void (*_swift_release_n)(void *object, uint32_t count);

UNSEEN static void give_back(void *object, uint32_t count) {
  if (count == 1)
    _swift_release(object);
  else
    _swift_release_n(object, count);
}

// If the library jumps to its function itself, it may expect that more registers are kept than a function in
// C keeps.
#define KEEPING __attribute__((preserve_most))

UNSEEN KEEPING static void note_release_n(void *object, uint32_t count) {
  // As the runtime does: no object, or one that is not counted.
  if ((intptr_t)object <= 0) return;
  if (swift_retainCount(object) > count) {
    _Atomic(bool) *lock = lock_of(object);
    while (atomic_exchange_explicit(lock, true, memory_order_acquire)) sched_yield();
    bool is_shared = swift_retainCount(object) > count;
    if (is_shared) {
      __tsan_release(object);
      give_back(object, count);
    }
    atomic_store_explicit(lock, false, memory_order_release);
    if (is_shared) return;
  }
  __tsan_acquire(object);
  give_back(object, count);
}

UNSEEN KEEPING static void note_release(void *object) { note_release_n(object, 1); }

UNSEEN static void redirect(const char *name, void *target) {
  uint8_t *function = dlsym(RTLD_NEXT, name);
#if defined(__x86_64__)
  // mov target, %r11; jmp *%r11
  uint8_t jump[13] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
  memcpy(jump + 2, &target, 8);
#elif defined(__aarch64__)
  // ldr x16, target; br x16
  uint32_t jump[4] = {0x58000050, 0xd61f0200};
  memcpy(jump + 2, &target, 8);
#endif
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *start = (uint8_t *)((uintptr_t)function & -page);
  size_t count = (size_t)(function + sizeof jump - start);
  if (function == NULL || mprotect(start, count, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) abort();
  memcpy(function, jump, sizeof jump);
  if (mprotect(start, count, PROT_READ | PROT_EXEC) != 0) abort();
  __builtin___clear_cache((char *)function, (char *)function + sizeof jump);
}

// The child of a fork has one thread, and no other that could give back what it held at that moment.
UNSEEN static void free_locks(void) {
  for (size_t i = 0; i < LOCKS; i++) atomic_store_explicit(&locks[i], false, memory_order_relaxed);
}

__attribute__((constructor)) UNSEEN static void put_notes(void) {
  if (pthread_atfork(NULL, NULL, free_locks) != 0) abort();
  redirect("swift_release", (void *)note_release);
  redirect("swift_release_n", (void *)note_release_n);
}

/// The object in a reference whose spare bits a string or a dictionary uses; none if it is none.
UNSEEN static void *plain(void *object) {
  if ((intptr_t)object <= 0) return NULL;
  return (void *)((uintptr_t)object & 0x00fffffffffffff8);
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
// The runtime notes a resumption, and that a task continues which had stopped. If the resumption comes
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
