#include <hiredis/hiredis.h>
// The C library of Swift leaves it out.
#include <sys/epoll.h>
