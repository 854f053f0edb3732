// Writes to file descriptors directly, so that a full disk or a closed pipe is noticed at the line that meets it.
// Text from elsewhere is made printable before it reaches a terminal.
#include "terminal/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dsat/base/secrets.h"
#include "dsat/base/utf8.h"
#include "terminal/exit_status.h"

namespace dsat::cli {

// Another program that shares the descriptor (Node, a CI runner) may have set O_NONBLOCK. The flag is left alone, and
// poll() waits.
void Output::write(std::string_view text) {
  while (error_ == 0 && !text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd room{fd_, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

bool Output::lost_within(std::chrono::milliseconds time) const {
  pollfd end{fd_, 0, 0};
  if (poll(&end, 1, static_cast<int>(time.count())) > 0) return true;
  return !terminal() && error_ != 0;
}

bool Output::terminal() const { return isatty(fd_) == 1; }

int Output::columns() const {
  winsize size{};
  return ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

int Output::rows() const {
  winsize size{};
  return ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

void Console::print(std::string_view text) { this->text().write(printable_text(text)); }

void Console::line(std::string_view text) { print(fmt::format("{}\n", text)); }

void Console::data(std::string_view text) {
  if (out_.terminal()) {
    out_.write(printable_text(text));
  } else {
    out_.write(text);
  }
}

void Console::aside(std::string_view text) { err_.write(fmt::format("{}\n", printable_text(text))); }

void Console::print_json(const Json& object) {
  // Notes and reasons come from scripts and plugins. Bytes that are not UTF-8 are replaced, so that the result is still
  // printed. On a terminal, characters beyond ASCII become \uXXXX.
  out_.write(object.dump(2, ' ', out_.terminal(), Json::error_handler_t::replace) + "\n");
}

void Console::error(std::string_view message) {
  err_.write(fmt::format("dsat-host: {}\n", one_line(mask_secrets(message))));
}

void Console::error_detail(std::string_view message) { err_.write(printable_text(mask_secrets(message)) + "\n"); }

int Console::finish(int status) {
  if (out_.error() == 0 || out_.error() == EPIPE) return status;
  error(fmt::format("cannot write to standard output: {}; what was printed is lost", std::strerror(out_.error())));
  return status == kBestFound ? kFailed : status;
}

void open_missing_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    // open() returns the lowest free number, which is fd because all lower ones are open by now.
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) _exit(kFailed);
  }
}

std::string one_line(std::string_view text) { return fmt::format("{}", fmt::join(printable_lines(text), " ")); }

}  // namespace dsat::cli
