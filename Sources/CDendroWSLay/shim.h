#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <wslay/wslay.h>

// The system's event notification, which the Swift overlay of the C library leaves out.

static const uint32_t dendro_readable = EPOLLIN;
static const uint32_t dendro_writable = EPOLLOUT;
static const uint32_t dendro_lost = EPOLLHUP | EPOLLERR;
// For poll(2) as well, whose POLLRDHUP is the same bit and is there for GNU's programs alone.
static const int16_t dendro_ended = EPOLLRDHUP;

static inline int dendro_poll_open(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int dendro_waker_open(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

// Returns 0, or -1 if the system has no room for another socket.
static inline int dendro_poll_add(int poll, int socket, uint32_t events) {
  struct epoll_event event = {.events = events, .data = {.fd = socket}};
  return epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
}

// The system reports a lost socket even if nothing is waited for. Then it does so once, and not over and over.
static inline void dendro_poll_change(int poll, int socket, uint32_t events) {
  struct epoll_event event = {
      .events = events != 0 ? events : EPOLLONESHOT, .data = {.fd = socket}};
  epoll_ctl(poll, EPOLL_CTL_MOD, socket, &event);
}

static inline void dendro_poll_remove(int poll, int socket) {
  epoll_ctl(poll, EPOLL_CTL_DEL, socket, NULL);
}

// Waits for one of the sockets if `waits` is not 0; gives at most `count` of them and their events.
static inline int dendro_poll_wait(
    int poll, int *sockets, uint32_t *events, int count, int waits) {
  struct epoll_event ready[64];
  int found = epoll_wait(poll, ready, count < 64 ? count : 64, waits ? -1 : 0);
  for (int index = 0; index < found; index++) {
    sockets[index] = ready[index].data.fd;
    events[index] = ready[index].events;
  }
  return found;
}
