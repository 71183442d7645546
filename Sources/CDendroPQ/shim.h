#pragma once

#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#include <postgresql/libpq-fe.h>
#endif

// libpq is opened when it is first needed: it loads a dozen other libraries, which would take more than a fifth of the
// time in which a command starts that needs none of them.
#define DENDRO_PQ_FUNCTIONS(each) \
  each(PQclear) each(PQcmdTuples) each(PQconninfoFree) each(PQconninfoParse) each(PQconnectPoll) \
  each(PQconnectStartParams) each(PQconsumeInput) each(PQerrorMessage) each(PQfformat) each(PQfinish) \
  each(PQflush) each(PQfreemem) each(PQgetResult) each(PQgetisnull) each(PQgetlength) each(PQgetvalue) \
  each(PQisBusy) each(PQnfields) each(PQntuples) each(PQresultErrorField) each(PQresultStatus) \
  each(PQsendPrepare) each(PQsendQuery) each(PQsendQueryPrepared) each(PQsetNoticeReceiver) \
  each(PQsetnonblocking) each(PQsocket) each(PQstatus)

// Its functions, under their names.
struct dendro_pq {
#define DENDRO_PQ_FIELD(name) __typeof__(&name) name;
  DENDRO_PQ_FUNCTIONS(DENDRO_PQ_FIELD)
#undef DENDRO_PQ_FIELD
};

// Returns 0, or -1 if the library is not installed, which dlerror() explains. It stays open.
static inline int dendro_pq_open(struct dendro_pq *pq) {
  void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return -1;
#define DENDRO_PQ_FIND(name) \
  if ((pq->name = (__typeof__(&name))dlsym(library, #name)) == NULL) return -1;
  DENDRO_PQ_FUNCTIONS(DENDRO_PQ_FIND)
#undef DENDRO_PQ_FIND
  return 0;
}

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
  const struct dendro_pq *pq;
  char text[256];
};

static inline void dendro_pq_receive(void *argument, const PGresult *result) {
  struct dendro_pq_warning *warning = argument;
  const char *severity = warning->pq->PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char *message = warning->pq->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (severity == NULL || strcmp(severity, "WARNING") != 0) return;
  strncpy(warning->text, message == NULL ? "a warning" : message, sizeof warning->text - 1);
  warning->text[sizeof warning->text - 1] = 0;
}

static inline void dendro_pq_receive_warnings(PGconn *connection, struct dendro_pq_warning *warning) {
  warning->pq->PQsetNoticeReceiver(connection, dendro_pq_receive, warning);
}
