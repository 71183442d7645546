#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// One GET request by libcurl, which is opened when it is first needed: who fetches nothing neither loads nor
// installs it. So its header is not needed for building either. The numbers below are part of its ABI, which is
// kept as long as the library's name.

enum {
  dendro_curl_option_write_data = 10001,
  dendro_curl_option_url = 10002,
  dendro_curl_option_proxy = 10004,
  dendro_curl_option_error_buffer = 10010,
  dendro_curl_option_user_agent = 10018,
  dendro_curl_option_header_data = 10029,
  dendro_curl_option_write_function = 20011,
  dendro_curl_option_header_function = 20079,
  dendro_curl_option_progress_data = 10057,
  dendro_curl_option_progress_function = 20219,
  dendro_curl_option_no_progress = 43,
  dendro_curl_option_no_signal = 99,
  dendro_curl_option_milliseconds = 155,
  dendro_curl_option_protocols = 181,
  dendro_curl_global_all = 3,
  dendro_curl_info_status = 0x200000 + 2,
  dendro_curl_protocol_http = 1,
  dendro_curl_protocol_https = 2,
  dendro_curl_error_size = 256,
};

// The library, ready to be used on any thread; NULL if it is not installed. To be called once.
static inline void *dendro_curl_open(void) {
  const char *names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"};
  for (size_t index = 0; index < sizeof names / sizeof *names; index++) {
    void *library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) continue;
    int (*initialize)(long) = (int (*)(long))dlsym(library, "curl_global_init");
    if (initialize != NULL && initialize(dendro_curl_global_all) == 0) return library;
    dlclose(library);
  }
  return NULL;
}

typedef size_t (*dendro_curl_consumer)(char *bytes, size_t size, size_t count, void *context);
typedef int (*dendro_curl_observer)(void *context, int64_t, int64_t, int64_t, int64_t);

struct dendro_curl_request {
  const char *url;
  // Whether HTTP without TLS is used, and no proxy.
  int is_plain;
  long milliseconds;
  // Gets each line of the head, and each part of the body. It returns the number of bytes, and another one to
  // give up.
  dendro_curl_consumer head;
  dendro_curl_consumer body;
  // Called about once a second; it returns 0 to go on.
  dendro_curl_observer progress;
  void *context;
  // HTTP's status.
  long status;
  // Why there is no answer.
  char error[dendro_curl_error_size];
};

// Performs the request, without following redirections. Returns 0 if there was an answer.
static inline int dendro_curl_perform(void *library, struct dendro_curl_request *request) {
  void *(*begin)(void) = (void *(*)(void))dlsym(library, "curl_easy_init");
  int (*set)(void *, int, ...) = (int (*)(void *, int, ...))dlsym(library, "curl_easy_setopt");
  int (*perform)(void *) = (int (*)(void *))dlsym(library, "curl_easy_perform");
  int (*information)(void *, int, ...) = (int (*)(void *, int, ...))dlsym(library, "curl_easy_getinfo");
  const char *(*sentence)(int) = (const char *(*)(int))dlsym(library, "curl_easy_strerror");
  void (*end)(void *) = (void (*)(void *))dlsym(library, "curl_easy_cleanup");
  request->status = 0;
  request->error[0] = 0;
  void *handle = NULL;
  if (begin != NULL && set != NULL && perform != NULL && information != NULL && sentence != NULL && end != NULL) {
    handle = begin();
  }
  if (handle == NULL) {
    snprintf(request->error, sizeof request->error, "libcurl cannot be used");
    return -1;
  }
  long protocol = request->is_plain ? dendro_curl_protocol_http : dendro_curl_protocol_https;
  int result = set(handle, dendro_curl_option_url, request->url);
  if (result == 0) result = set(handle, dendro_curl_option_protocols, protocol);
  if (result == 0) result = set(handle, dendro_curl_option_milliseconds, request->milliseconds);
  // Without it a name that is looked up for too long ends in a signal.
  if (result == 0) result = set(handle, dendro_curl_option_no_signal, 1L);
  if (result == 0) result = set(handle, dendro_curl_option_user_agent, "dendro");
  if (result == 0 && request->is_plain) result = set(handle, dendro_curl_option_proxy, "");
  if (result == 0) result = set(handle, dendro_curl_option_error_buffer, request->error);
  if (result == 0) result = set(handle, dendro_curl_option_header_function, request->head);
  if (result == 0) result = set(handle, dendro_curl_option_header_data, request->context);
  if (result == 0) result = set(handle, dendro_curl_option_write_function, request->body);
  if (result == 0) result = set(handle, dendro_curl_option_write_data, request->context);
  if (result == 0) result = set(handle, dendro_curl_option_progress_function, request->progress);
  if (result == 0) result = set(handle, dendro_curl_option_progress_data, request->context);
  if (result == 0) result = set(handle, dendro_curl_option_no_progress, 0L);
  if (result == 0) result = perform(handle);
  if (result == 0) result = information(handle, dendro_curl_info_status, &request->status);
  if (result != 0 && request->error[0] == 0) {
    snprintf(request->error, sizeof request->error, "%s", sentence(result));
  }
  end(handle);
  return result;
}
