#include <stdio.h>
#include <stdlib.h>
#include <editline/readline.h>

// Swift refuses to touch C's global variables: other threads may.

/// Sets what proposes completions; no other ones are proposed.
static inline void dendro_edit_set_completion(char **(*propose)(const char *, int, int)) {
  rl_attempted_completion_function = propose;
}

/// Ends a completion: file names are no candidates, and nothing is appended to the only one.
static inline void dendro_edit_end_completion(int appended) {
  rl_attempted_completion_over = 1;
  rl_completion_append_character = appended;
}

/// The line so far.
static inline const char *dendro_edit_line(void) { return rl_line_buffer; }
