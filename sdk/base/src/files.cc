// Reads and writes whole files with system calls, because a stream hides the cause of an error and cannot sync.
#include "dsat/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dsat/base/random_bits.h"
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

// Reads up to `bytes.size()` bytes and cuts `bytes` to what was read. Returns an errno or 0.
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

void write_all(int fd, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) fail("write", shown, errno);
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
  }
}

// Checks that `fd` is an open regular file, and fills `info`. Returns the problem; empty: none.
std::string open_regular(int fd, struct stat& info) {
  if (fd < 0) return std::strerror(errno);
  if (::fstat(fd, &info) != 0) return std::strerror(errno);
  return S_ISREG(info.st_mode) ? "" : kind_of(info.st_mode);
}

int open_to_read(const fs::path& file) { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }

FileText too_large(size_t max_bytes) { return {{}, fmt::format("it is larger than {} bytes", max_bytes)}; }

// `size`: the file's expected size. A file may grow while it is read, and files of /proc have size 0.
FileText read_regular(int fd, size_t size, size_t max_bytes) {
  FileText text;
  for (size_t wanted = size + 1;; wanted = std::max<size_t>(4096, 2 * wanted)) {
    wanted = std::min(wanted, max_bytes + 1);
    std::string more(wanted - std::min(wanted, text.bytes.size()), '\0');
    const size_t asked = more.size();
    if (const int error = read_up_to(fd, more); error != 0) return {{}, std::strerror(error)};
    text.bytes += more;
    if (text.bytes.size() > max_bytes) return too_large(max_bytes);
    if (more.size() < asked) return text;
  }
}

// poll() waits for the first writer of a pipe; read() alone would report the end.
FileText read_pipe(int fd, std::chrono::milliseconds patience, size_t max_bytes) {
  FileText text;
  char block[4096];
  while (true) {
    pollfd readable{fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(patience.count()));
    if (ready == 0) {
      const double seconds = std::chrono::duration<double>(patience).count();
      return {{}, fmt::format("it is a pipe, and nothing came through it for {:g} s", seconds)};
    }
    const ssize_t n = ready < 0 ? -1 : ::read(fd, block, sizeof block);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return {{}, std::strerror(errno)};
    if (n == 0) return text;
    if (n > 0) text.bytes.append(block, static_cast<size_t>(n));
    if (text.bytes.size() > max_bytes) return too_large(max_bytes);
  }
}

}  // namespace

FileText try_read_file(const fs::path& file, size_t max_bytes) {
  const Descriptor opened(open_to_read(file));
  struct stat info {};
  const std::string problem = open_regular(opened.get(), info);
  if (!problem.empty()) return {{}, problem};
  return read_regular(opened.get(), static_cast<size_t>(info.st_size), max_bytes);
}

FileText try_read_input(const fs::path& file, std::chrono::milliseconds patience, size_t max_bytes) {
  const Descriptor opened(open_to_read(file));
  struct stat info {};
  const std::string problem = open_regular(opened.get(), info);
  if (opened.get() >= 0 && S_ISFIFO(info.st_mode)) return read_pipe(opened.get(), patience, max_bytes);
  if (!problem.empty()) return {{}, problem};
  return read_regular(opened.get(), static_cast<size_t>(info.st_size), max_bytes);
}

std::string read_file(const fs::path& file, size_t max_bytes) {
  FileText text = try_read_file(file, max_bytes);
  if (!text.ok()) throw Error(DSAT_INTERNAL, fmt::format("cannot read {}: {}", file.string(), text.problem));
  return std::move(text.bytes);
}

std::string read_tail(const fs::path& file, size_t max_bytes) {
  const Descriptor opened(open_to_read(file));
  struct stat info {};
  if (!open_regular(opened.get(), info).empty()) return {};
  const off_t start = std::max<off_t>(0, info.st_size - static_cast<off_t>(max_bytes));
  std::string text(static_cast<size_t>(info.st_size - start), '\0');
  if (::lseek(opened.get(), start, SEEK_SET) < 0 || read_up_to(opened.get(), text) != 0) return {};
  return text;
}

NewFile::NewFile(const fs::path& path, std::string shown, Access access)
    : shown_(shown.empty() ? path.string() : std::move(shown)), fd_(-1) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("write", shown_, errno);
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, access == Access::owner ? 0600 : 0666);
  if (fd_ < 0) fail("write", shown_, errno);
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
}

void NewFile::write(const void* data, size_t bytes) { write_all(fd_, {static_cast<const char*>(data), bytes}, shown_); }

void NewFile::sync() {
  if (::fsync(fd_) != 0) fail("sync", shown_, errno);
}

void NewFile::close() {
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail("write", shown_, errno);
}

void write_into(const fs::path& target, std::string_view bytes) {
  const Descriptor opened(::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (opened.get() < 0) fail("write", target.string(), errno);
  write_all(opened.get(), bytes, target.string());
}

std::optional<uint64_t> free_bytes(const fs::path& folder) {
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0 || info.f_frsize == 0 || info.f_blocks == 0) return std::nullopt;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

void sync_folder(const fs::path& folder) {
  const Descriptor opened(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) fail("sync the folder", folder.string(), errno);
  if (::fsync(opened.get()) != 0 && errno != EINVAL) fail("sync the folder", folder.string(), errno);
}

namespace {

// Nobody can guess the name and make a file or a link of it first. It is short, since the file's own may be as long as
// the file system allows.
fs::path temporary_beside(const fs::path& file) {
  return file.parent_path() / fmt::format(".{:016x}.tmp", random_bits());
}

}  // namespace

void write_file_atomically(const fs::path& file, std::string_view bytes, Durability durability, Access access) {
  const fs::path temporary = temporary_beside(file);
  NewFile out(temporary, file.string(), access);
  try {
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
