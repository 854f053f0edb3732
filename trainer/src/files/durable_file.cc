#include "files/durable_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "dsat/error.h"

namespace dsat::trainer {

namespace {

[[noreturn]] void fail_to_write(const std::string& path, const char* what) {
  throw Error(DSAT_INTERNAL, "cannot write " + path + ": " + what + ": " + std::strerror(errno));
}

// Some network file systems cannot exchange two names: then there is a moment without the new one.
bool exchange_in_steps(const char* source, const char* target) {
  const std::string aside = std::string(source) + ".old";
  return ::rename(target, aside.c_str()) == 0 && ::rename(source, target) == 0 && ::rename(aside.c_str(), source) == 0;
}

}  // namespace

NewFile::NewFile(const std::string& path, std::string shown)
    : shown_(shown.empty() ? path : std::move(shown)),
      fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail_to_write(shown_, "open");
}

NewFile::~NewFile() { ::close(fd_); }

void NewFile::write(const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::write(fd_, begin + done, bytes - done);
    if (n < 0 && errno != EINTR) fail_to_write(shown_, "write");
    if (n > 0) done += static_cast<size_t>(n);
  }
}

void NewFile::sync() {
  if (::fsync(fd_) != 0) fail_to_write(shown_, "fsync");
}

void sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_to_write(path, "open");
  const bool ok = ::fsync(fd) == 0;
  const int cause = errno;
  ::close(fd);
  errno = cause;
  if (!ok) fail_to_write(path, "fsync");
}

void write_text_atomically(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  try {
    NewFile file(temporary, path);
    file.write(text.data(), text.size());
    file.sync();
  } catch (const Error&) {
    const int cause = errno;
    ::unlink(temporary.c_str());
    errno = cause;
    throw;
  }
  if (::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int cause = errno;
  ::unlink(temporary.c_str());
  errno = cause;
  fail_to_write(path, "rename");
}

void put_folder_in_place(const std::string& parent, const std::string& from, const std::string& to) {
  const std::string source = parent + "/" + from, target = parent + "/" + to;
  const bool exchange = ::access(target.c_str(), F_OK) == 0;
  const unsigned flags = exchange ? RENAME_EXCHANGE : 0;
  bool done = ::renameat2(AT_FDCWD, source.c_str(), AT_FDCWD, target.c_str(), flags) == 0;
  if (!done && exchange && errno == EINVAL) done = exchange_in_steps(source.c_str(), target.c_str());
  if (!done) fail_to_write(target, "rename");
  sync_folder(parent);
}

}  // namespace dsat::trainer
