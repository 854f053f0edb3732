// One rank's file of a checkpoint: fp32 arrays over ranges of parameters, and blobs that are the rank's own.
//
// Format: 8 bytes "DSATCKPT"; version and length of the header, 32 bits each; the header as JSON; then, each on a
// multiple of 64 bytes, the arrays and the blobs in the header's order. The header has the CRC-32 of these bytes,
// padding apart. Numbers are little-endian. Every array has one value for each element of the ranges, range after
// range. Threading: none of its own. Errors: dsat::Error, one line that names the file.
#ifndef DSAT_TRAINER_FILES_CHECKPOINT_SHARD_H_
#define DSAT_TRAINER_FILES_CHECKPOINT_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dsat/error.h"
#include "layout/owned_ranges.h"

namespace dsat::trainer {

inline constexpr int kCheckpointVersion = 1;

// Borrowed memory of the whole shard, which a range's shard_begin points into.
struct ShardArray {
  std::string name;
  float* values = nullptr;
};

// Borrowed bytes.
struct Blob {
  std::string name;
  void* data = nullptr;
  size_t bytes = 0;
};

// The most that the disk may have to take in at a time.
inline constexpr uint64_t kUnsyncedBytes = uint64_t{16} << 20;

// Writes the file and waits for the disk.
void write_shard(const std::string& path, const std::vector<OwnedRange>& ranges, const std::vector<ShardArray>& arrays,
                 const std::vector<Blob>& blobs);

class ShardReader {
 public:
  // Opens and checks the file: it must be there, of this format and version, as long as its header says, and its
  // values those that were saved.
  explicit ShardReader(const std::string& path);
  ~ShardReader();
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  // shard_begin counts from the start of an array in the file.
  const std::vector<OwnedRange>& ranges() const { return ranges_; }
  bool has_array(const std::string& name) const;
  bool has_blob(const std::string& name) const;
  // `count` values of an array from the file's element `begin` on.
  void read(const std::string& array, int64_t begin, int64_t count, float* to) const;
  // Throws unless there is a blob of that name and size.
  void check(const Blob& blob) const;
  void read(const Blob& blob) const;

 private:
  struct Part {
    std::string name;
    uint64_t at = 0, bytes = 0;  // in the file
  };
  void open();
  void parse(const std::string& header, uint64_t file_bytes);
  void check_payload(uint32_t expected) const;
  static bool has(const std::vector<Part>& parts, const std::string& name);
  const Part& part(const std::vector<Part>& parts, const std::string& name) const;
  void read_at(uint64_t at, void* to, size_t bytes) const;

  std::string path_;
  int fd_;
  std::vector<OwnedRange> ranges_;
  std::vector<Part> arrays_, blobs_;
};

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_FILES_CHECKPOINT_SHARD_H_
