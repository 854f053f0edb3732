// Reads and writes whole files with the system's own calls: a stream hides why it failed and cannot sync.
#include "dsat/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "dsat/error.h"

namespace dsat {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const char* action, const std::string& file, int error) {
  throw Error(DSAT_INTERNAL, fmt::format("cannot {} {}: {}", action, file, std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder";
  if (S_ISFIFO(mode)) return "it is a pipe";
  return "it is no regular file";
}

// Reads up to `bytes.size()` bytes at the descriptor's place and cuts `bytes` to what there was; an errno or 0.
int read_up_to(int fd, std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return 0;
}

// Opens a regular file without waiting for anybody; `info` is its state. A problem instead: text.
std::string open_regular(int fd, struct stat& info) {
  if (fd < 0) return std::strerror(errno);
  if (::fstat(fd, &info) != 0) return std::strerror(errno);
  return S_ISREG(info.st_mode) ? "" : kind_of(info.st_mode);
}

}  // namespace

FileText try_read_file(const fs::path& file, size_t max_bytes) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  FileText text;
  text.problem = open_regular(opened.get(), info);
  if (!text.ok()) return text;
  const std::string too_large = fmt::format("it is larger than {} bytes", max_bytes);
  if (static_cast<uint64_t>(info.st_size) > max_bytes) return {{}, too_large};
  // A file may grow while it is read, and files of /proc have size 0: read until its end, whatever its size.
  for (size_t wanted = static_cast<size_t>(info.st_size) + 1;; wanted = std::max<size_t>(4096, 2 * wanted)) {
    wanted = std::min(wanted, max_bytes + 1);
    std::string more(wanted - std::min(wanted, text.bytes.size()), '\0');
    const size_t asked = more.size();
    if (const int error = read_up_to(opened.get(), more); error != 0) return {{}, std::strerror(error)};
    text.bytes += more;
    if (text.bytes.size() > max_bytes) return {{}, too_large};
    if (more.size() < asked) return text;
  }
}

std::string read_file(const fs::path& file, size_t max_bytes) {
  FileText text = try_read_file(file, max_bytes);
  if (!text.ok()) throw Error(DSAT_INTERNAL, fmt::format("cannot read {}: {}", file.string(), text.problem));
  return std::move(text.bytes);
}

std::string read_tail(const fs::path& file, size_t max_bytes) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!open_regular(opened.get(), info).empty()) return {};
  const off_t start = std::max<off_t>(0, info.st_size - static_cast<off_t>(max_bytes));
  std::string text(static_cast<size_t>(info.st_size - start), '\0');
  if (::lseek(opened.get(), start, SEEK_SET) < 0 || read_up_to(opened.get(), text) != 0) return {};
  return text;
}

NewFile::NewFile(const fs::path& path, std::string shown)
    : shown_(shown.empty() ? path.string() : std::move(shown)),
      fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail("write", shown_, errno);
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
}

void NewFile::write(const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::write(fd_, begin + done, bytes - done);
    if (n < 0 && errno != EINTR) fail("write", shown_, errno);
    if (n > 0) done += static_cast<size_t>(n);
  }
}

void NewFile::sync() {
  if (::fsync(fd_) != 0) fail("sync", shown_, errno);
}

void NewFile::close() {
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail("write", shown_, errno);
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) fail("sync the folder", folder.string(), errno);
  if (::fsync(opened.get()) != 0 && errno != EINVAL) fail("sync the folder", folder.string(), errno);
}

void write_file_atomically(const fs::path& file, std::string_view bytes, Durability durability) {
  const fs::path temporary = file.parent_path() / fmt::format(".{}.{}.tmp", file.filename().string(), ::getpid());
  try {
    NewFile out(temporary, file.string());
    out.write(bytes.data(), bytes.size());
    if (durability == Durability::synced) out.sync();
    out.close();
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail("write", file.string(), errno);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (durability == Durability::synced) sync_folder(file.parent_path());
}

}  // namespace dsat
