#include <fcntl.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <stdint.h>

// Macros, enumerations and functions with variable arguments, which Swift does not import or renames.

static const enum MHD_Result dendro_yes = MHD_YES;
static const enum MHD_Result dendro_no = MHD_NO;
static const enum MHD_FEATURE dendro_suppresses_sigpipe = MHD_FEATURE_AUTOSUPPRESS_SIGPIPE;
static const enum MHD_ValueKind dendro_header_kind = MHD_HEADER_KIND;
static const enum MHD_ResponseMemoryMode dendro_copied = MHD_RESPMEM_MUST_COPY;
static const uint64_t dendro_size_unknown = MHD_SIZE_UNKNOWN;
static const ssize_t dendro_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;

struct dendro_http_options {
  unsigned int thread_count;
  unsigned int connection_limit;
  unsigned int timeout_seconds;
  size_t connection_memory;
  int is_strict;
  MHD_AccessHandlerCallback handler;
  void *handler_context;
  MHD_RequestCompletedCallback completed;
  MHD_NotifyConnectionCallback connection;
  void *(*target)(void *, const char *, struct MHD_Connection *);
};

static inline struct MHD_Daemon *dendro_http_start(const struct dendro_http_options *options) {
  // Sockets are handed over by MHD_add_connection.
  unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC
      | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE;
  return MHD_start_daemon(
      flags, 0, NULL, NULL, options->handler, options->handler_context,
      MHD_OPTION_THREAD_POOL_SIZE, options->thread_count,
      MHD_OPTION_CONNECTION_LIMIT, options->connection_limit,
      MHD_OPTION_CONNECTION_TIMEOUT, options->timeout_seconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->connection_memory,
      MHD_OPTION_STRICT_FOR_CLIENT, options->is_strict,
      MHD_OPTION_NOTIFY_COMPLETED, options->completed, options->handler_context,
      MHD_OPTION_NOTIFY_CONNECTION, options->connection, options->handler_context,
      MHD_OPTION_URI_LOG_CALLBACK, options->target, options->handler_context,
      MHD_OPTION_END);
}

static const enum MHD_ConnectionNotificationCode dendro_connection_started =
    MHD_CONNECTION_NOTIFY_STARTED;

// -1 if there is none.
static inline int dendro_connection_socket(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == NULL ? -1 : info->connect_fd;
}

// What was kept with the connection when it started; null if nothing was.
static inline void *dendro_connection_context(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == NULL ? NULL : info->socket_context;
}

// The other end of the connection; null if that is not known.
static inline const struct sockaddr *dendro_client_address(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info == NULL ? NULL : info->client_addr;
}

// The bytes from the method to the end of the head.
static inline size_t dendro_head_size(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return info == NULL ? 0 : info->header_size;
}

// Another descriptor of the socket, which other programs do not inherit; -1 if there is none.
static inline int dendro_duplicate(int socket) { return fcntl(socket, F_DUPFD_CLOEXEC, 0); }

static inline void dendro_upgrade_close(struct MHD_UpgradeResponseHandle *upgrade) {
  MHD_upgrade_action(upgrade, MHD_UPGRADE_ACTION_CLOSE);
}
