// Moves the wall clock of a process that loads this first (LD_PRELOAD), and no other clock.
//
// By how many seconds stands in a file of eight bytes, which DENDRO_MOVED_CLOCK names. It is mapped, so that the clock of
// a running process moves when another one writes the file. Deadlines by the wall clock come when the process would see
// them come if the clock had not been moved since it began to wait.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *file;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("DENDRO_MOVED_CLOCK");
  int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (descriptor < 0) abort();
  void *place = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, descriptor, 0);
  if (place == MAP_FAILED) abort();
  close(descriptor);
  file = place;
}

static time_t offset(void) { return file ? (time_t)*file : 0; }

static int is_wall(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && is_wall(clock)) now->tv_sec += offset();
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  now->tv_sec = time.tv_sec;
  now->tv_usec = time.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *place) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  if (place) *place = time.tv_sec;
  return time.tv_sec;
}

int pthread_cond_timedwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
    const struct timespec *restrict deadline) {
  // The condition does not tell its clock; no machine has run for thirty years.
  if (deadline->tv_sec < 1000000000)
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, deadline);
  struct timespec real = {deadline->tv_sec - offset(), deadline->tv_nsec};
  return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, &real);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline) {
  struct timespec real = {deadline->tv_sec - offset(), deadline->tv_nsec};
  return sem_clockwait(semaphore, CLOCK_REALTIME, &real);
}
