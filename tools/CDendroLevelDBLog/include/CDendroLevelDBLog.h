#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// Has LevelDB go on with its log and its write buffer where it left off, instead of writing a table at each opening.
///
/// - `options`: a `leveldb_options_t`.
/// - Returns: 0 if this was built without LevelDB's headers; nothing has changed then.
int dendro_leveldb_reuse_logs(void *options);

#ifdef __cplusplus
}
#endif
