#pragma once

#include <libpq-fe.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// What the Swift overlay of the C library leaves out, and a receiver of notices.

static inline int dendro_event_open(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

static inline void dendro_event_set(int event) {
  uint64_t one = 1;
  ssize_t written = write(event, &one, sizeof one);
  (void)written;
}

// Returns whether it was set.
static inline int dendro_event_clear(int event) {
  uint64_t count = 0;
  return read(event, &count, sizeof count) == sizeof count;
}

// Waits until the socket can be read, or written as well if `writes` is not 0, until the event is set, or until the time is
// over; -1 waits for ever. Returns 1 for the socket, 2 for the event, 0 if the time is over, -1 if the call was interrupted.
static inline int dendro_pq_wait(int socket, int reads, int writes, int event, int milliseconds) {
  struct pollfd ready[2] = {
      {.fd = event, .events = POLLIN},
      {.fd = socket, .events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0))}};
  int count = poll(ready, socket < 0 ? 1 : 2, milliseconds);
  if (count < 0) return -1;
  if (count == 0) return 0;
  return ready[0].revents != 0 ? 2 : 1;
}

// The last warning of a connection.
struct dendro_pq_warning {
  char text[256];
};

static inline void dendro_pq_receive(void *argument, const PGresult *result) {
  struct dendro_pq_warning *warning = argument;
  const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (severity == NULL || strcmp(severity, "WARNING") != 0) return;
  strncpy(warning->text, message == NULL ? "a warning" : message, sizeof warning->text - 1);
  warning->text[sizeof warning->text - 1] = 0;
}

static inline void dendro_pq_receive_warnings(PGconn *connection, struct dendro_pq_warning *warning) {
  PQsetNoticeReceiver(connection, dendro_pq_receive, warning);
}
