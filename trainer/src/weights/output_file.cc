// The temporary name has the process's number, so that two programs do not write into one file.
#include "weights/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "dsat/base/files.h"
#include "dsat/error.h"

namespace dsat::trainer {

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      unfinished_(fmt::format("{}.{}.unfinished", path_, ::getpid())),
      fd_(::open(unfinished_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail();
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(unfinished_.c_str());
}

void OutputFile::fail() const {
  throw Error(DSAT_INTERNAL, fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
}

void OutputFile::write(const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::write(fd_, begin + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail();
    done += static_cast<size_t>(n);
  }
}

void OutputFile::commit() {
  if (::fsync(fd_) != 0 || ::rename(unfinished_.c_str(), path_.c_str()) != 0) fail();
  ::close(fd_);
  fd_ = -1;
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  sync_folder(parent.empty() ? "." : parent);
}

}  // namespace dsat::trainer
