#include "CDendroLevelDBLog.h"

// The package is built without LevelDB as well.
#if __has_include(<leveldb/options.h>)
#include <leveldb/options.h>

// LevelDB's C interface has no function for this option. Its options are the C++ ones and nothing before them
// (`leveldb_options_t` in db/c.cc).
int dendro_leveldb_reuse_logs(void *options) {
  static_cast<leveldb::Options *>(options)->reuse_logs = true;
  return 1;
}
#else
int dendro_leveldb_reuse_logs(void *) { return 0; }
#endif
