// Writes a shard in one pass from borrowed memory, and reads it back after it has checked all of it.
// The reader trusts no size: it compares the file's length and its CRC-32 with the header before any value is used.
#include "files/checkpoint_shard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dsat/base/files.h"

namespace dsat::trainer {
namespace {

constexpr char kMagic[8] = {'D', 'S', 'A', 'T', 'C', 'K', 'P', 'T'};
constexpr uint64_t kAlignment = 64;

struct Preamble {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
};

uint64_t aligned(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

int64_t elements_of(const std::vector<OwnedRange>& ranges) {
  int64_t elements = 0;
  for (const OwnedRange& range : ranges) elements += range.size;
  return elements;
}

uLong added(uLong sum, const void* data, size_t bytes) { return crc32_z(sum, static_cast<const Bytef*>(data), bytes); }

// Covers all values and blobs, one after the other.
uLong checksum_of(const std::vector<OwnedRange>& ranges, const std::vector<ShardArray>& arrays,
                  const std::vector<Blob>& blobs) {
  uLong sum = crc32_z(0, nullptr, 0);
  for (const ShardArray& array : arrays) {
    for (const OwnedRange& range : ranges) {
      sum = added(sum, array.values + range.shard_begin, static_cast<size_t>(range.size) * sizeof(float));
    }
  }
  for (const Blob& blob : blobs) sum = added(sum, blob.data, blob.bytes);
  return sum;
}

Json header_of(const std::vector<OwnedRange>& ranges, const std::vector<ShardArray>& arrays,
               const std::vector<Blob>& blobs) {
  Json header = {{"arrays", Json::array()}, {"blobs", Json::array()}, {"ranges", Json::array()}};
  header["crc32"] = checksum_of(ranges, arrays, blobs);
  for (const ShardArray& array : arrays) header["arrays"].push_back(array.name);
  for (const Blob& blob : blobs) header["blobs"].push_back({blob.name, blob.bytes});
  for (const OwnedRange& range : ranges) header["ranges"].push_back({range.parameter, range.begin, range.size});
  return header;
}

// Writes one part after the other, each on its boundary. It waits for the disk again and again on the way: one wait at
// the end, for all of a large shard, would look like a rank that hangs (watch/rank_watch.h).
class PartWriter {
 public:
  explicit PartWriter(const std::string& path) : file_(path) {}
  void write(const void* data, size_t bytes) {
    const char* const begin = static_cast<const char*>(data);
    for (size_t done = 0; done < bytes;) {
      const size_t some = std::min<size_t>(bytes - done, kUnsyncedBytes - at_ % kUnsyncedBytes);
      file_.write(begin + done, some);
      done += some;
      at_ += some;
      if (at_ % kUnsyncedBytes == 0) file_.sync();
    }
  }
  void align() {
    static const char zeros[kAlignment] = {};
    write(zeros, aligned(at_) - at_);
  }
  void sync() { file_.sync(); }

 private:
  NewFile file_;
  uint64_t at_ = 0;
};

}  // namespace

void write_shard(const std::string& path, const std::vector<OwnedRange>& ranges, const std::vector<ShardArray>& arrays,
                 const std::vector<Blob>& blobs) {
  const std::string header = header_of(ranges, arrays, blobs).dump();
  Preamble preamble = {{}, kCheckpointVersion, static_cast<uint32_t>(header.size())};
  std::memcpy(preamble.magic, kMagic, sizeof kMagic);
  PartWriter writer(path);
  writer.write(&preamble, sizeof preamble);
  writer.write(header.data(), header.size());
  for (const ShardArray& array : arrays) {
    writer.align();
    for (const OwnedRange& range : ranges) {
      writer.write(array.values + range.shard_begin, static_cast<size_t>(range.size) * sizeof(float));
    }
  }
  for (const Blob& blob : blobs) {
    writer.align();
    writer.write(blob.data, blob.bytes);
  }
  writer.align();
  writer.sync();
}

ShardReader::ShardReader(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0 && errno == ENOENT) throw Error(fmt::format("{} is missing: the checkpoint is not whole", path));
  if (fd_ < 0) throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  try {
    open();
  } catch (const Json::exception&) {
    ::close(fd_);
    throw Error(fmt::format("{} is damaged: its header cannot be read", path_));
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

ShardReader::~ShardReader() { ::close(fd_); }

void ShardReader::open() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) throw Error(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  Preamble preamble{};
  if (file_bytes < sizeof preamble) throw Error(fmt::format("{} is truncated: it ends before its header", path_));
  read_at(0, &preamble, sizeof preamble);
  if (std::memcmp(preamble.magic, kMagic, sizeof kMagic) != 0)
    throw Error(fmt::format("{} is no checkpoint of dsat-trial", path_));
  if (preamble.version != kCheckpointVersion) {
    throw Error(fmt::format("{} has version {} of the checkpoint format; this program reads version {}", path_,
                            preamble.version, kCheckpointVersion));
  }
  if (file_bytes < sizeof preamble + preamble.header_bytes) {
    throw Error(fmt::format("{} is truncated: it ends before its header", path_));
  }
  std::string header(preamble.header_bytes, '\0');
  read_at(sizeof preamble, header.data(), header.size());
  parse(header, file_bytes);
}

void ShardReader::parse(const std::string& text, uint64_t file_bytes) {
  const Json header = Json::parse(text);
  int64_t begin = 0;
  for (const Json& range : header.at("ranges")) {
    ranges_.push_back({range.at(0), range.at(1), range.at(2), begin});
    begin += ranges_.back().size;
  }
  uint64_t at = sizeof(Preamble) + text.size();
  const auto place = [&](const std::string& name, uint64_t bytes) {
    const Part part{name, aligned(at), bytes};
    at = part.at + bytes;
    return part;
  };
  const auto array_bytes = static_cast<uint64_t>(elements_of(ranges_)) * sizeof(float);
  for (const Json& name : header.at("arrays")) arrays_.push_back(place(name, array_bytes));
  for (const Json& blob : header.at("blobs")) blobs_.push_back(place(blob.at(0), blob.at(1)));
  if (file_bytes < aligned(at)) {
    throw Error(fmt::format("{} is truncated: it has {} of {} bytes", path_, file_bytes, aligned(at)));
  }
  check_payload(header.at("crc32").get<uint32_t>());
}

void ShardReader::check_payload(uint32_t expected) const {
  std::vector<char> some(size_t{1} << 20);
  uLong sum = crc32_z(0, nullptr, 0);
  for (const std::vector<Part>* parts : {&arrays_, &blobs_}) {
    for (const Part& part : *parts) {
      for (uint64_t done = 0; done < part.bytes;) {
        const size_t bytes = std::min<uint64_t>(some.size(), part.bytes - done);
        read_at(part.at + done, some.data(), bytes);
        sum = added(sum, some.data(), bytes);
        done += bytes;
      }
    }
  }
  if (sum != expected) {
    throw Error(fmt::format("{} is damaged: its values have another checksum than when they were saved", path_));
  }
}

const ShardReader::Part& ShardReader::part(const std::vector<Part>& parts, const std::string& name) const {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
  if (found == parts.end()) throw Error(fmt::format("{} has no \"{}\"", path_, name));
  return *found;
}

bool ShardReader::has(const std::vector<Part>& parts, const std::string& name) {
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
}
bool ShardReader::has_array(const std::string& name) const { return has(arrays_, name); }
bool ShardReader::has_blob(const std::string& name) const { return has(blobs_, name); }

void ShardReader::read(const std::string& array, int64_t begin, int64_t count, float* to) const {
  const uint64_t at = part(arrays_, array).at + static_cast<uint64_t>(begin) * sizeof(float);
  read_at(at, to, static_cast<size_t>(count) * sizeof(float));
}

void ShardReader::check(const Blob& blob) const {
  const uint64_t bytes = part(blobs_, blob.name).bytes;
  if (bytes == blob.bytes) return;
  throw Error(fmt::format("{}: \"{}\" has {} bytes there and {} here", path_, blob.name, bytes, blob.bytes));
}

void ShardReader::read(const Blob& blob) const {
  check(blob);
  read_at(part(blobs_, blob.name).at, blob.data, blob.bytes);
}

void ShardReader::read_at(uint64_t at, void* to, size_t bytes) const {
  char* const begin = static_cast<char*>(to);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_, begin + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    const char* const problem = n == 0 ? "it is truncated" : std::strerror(errno);
    if (n <= 0) throw Error(fmt::format("cannot read {}: {}", path_, problem));
    done += static_cast<size_t>(n);
  }
}

}  // namespace dsat::trainer
