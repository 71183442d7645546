// Asks the processor to load a cache line. Reads nothing: any address is allowed.
static inline void dendro_prefetch(const void *address) { __builtin_prefetch(address); }

// Tells the processor that the thread waits in a loop for another one.
static inline void dendro_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield" ::: "memory");
#endif
}
