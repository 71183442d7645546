// Asks the processor to load a cache line. Reads nothing: any address is allowed.
static inline void dendro_prefetch(const void *address) { __builtin_prefetch(address); }
