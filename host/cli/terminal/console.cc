#include "terminal/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "terminal/exit_status.h"

namespace dsat::cli {

void Output::write(std::string_view text) {
  while (error_ == 0 && !text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

bool Output::terminal() const { return isatty(fd_) == 1; }

int Output::columns() const {
  winsize size{};
  return ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Console::print_json(const Json& object) {
  // Notes and reasons come from scripts and plugins: bytes that are no UTF-8 must not cost the result.
  out_.write(object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Console::error(std::string_view message) { err_.write("dsat-host: " + one_line(message) + "\n"); }

void Console::error_detail(std::string_view message) { err_.write(std::string(message) + "\n"); }

int Console::finish(int status) {
  if (out_.error() == 0 || out_.error() == EPIPE) return status;
  error(std::string("cannot write to standard output: ") + std::strerror(out_.error()) + "; what was printed is lost");
  return status == kBestFound ? kFailed : status;
}

void open_missing_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open() returns the lowest free number, which is fd: those below are open by now.
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) _exit(kFailed);
  }
}

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  return line;
}

}  // namespace dsat::cli
