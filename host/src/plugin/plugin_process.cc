// Uses a socket pair for messages and a pipe for the plugin's output. The process leads its own session, and its
// process group is killed at its end.
#include "plugin/plugin_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/guarded.h"
#include "base/installed.h"
#include "dsat/base/utf8.h"
#include "dsat/host/environment.h"
#include "plugin/request_limits.h"

namespace dsat::host {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kProgram = "dsat-plugin-host";
constexpr milliseconds kGrace{1000};  // to be destroyed, or to end after the connection has ended
constexpr size_t kChunkBytes = size_t{64} << 10;

struct Pair {
  int ours = -1, theirs = -1;
};

Error cannot(const char* what) { return internal_error(fmt::format("cannot {}: {}", what, std::strerror(errno))); }

Pair make_sockets() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw cannot("make a socket pair");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

Pair make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw cannot("make a pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

// 0: no limit. A plugin that is only tried in the process, and then runs in this one, has none here either.
uint64_t memory_limit(const PluginProcesses& settings) {
  return settings.isolation == Isolation::none ? 0 : kPluginMemoryBytes;
}

std::string text_of(const ExitStatus& end) {
  if (end.signal != 0) return fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal));
  return fmt::format("ended with exit status {}", end.code);
}

}  // namespace

fs::path find_plugin_host(const fs::path& given) {
  return find_helper(kProgram, given,
                     "name the file (plugin_host of the library's options), or run the plugin in this process "
                     "(--isolation none)");
}

PluginProcess::PluginProcess(const PluginProcesses& settings, const fs::path& file, Printed printed)
    : timeout_(settings.plugin_timeout), printed_(std::move(printed)), deadline_(Clock::now() + timeout_) {
  const fs::path program = find_plugin_host(settings.plugin_host);
  const Pair sockets = make_sockets();
  socket_ = sockets.ours;
  const Pair pipe = make_pipe();
  output_ = pipe.ours;
  SpawnOptions options;
  options.argv = {program.string(), std::to_string(getpid()), std::to_string(memory_limit(settings)), file.string()};
  options.environment = current_environment();
  options.stdout_fd = options.stderr_fd = pipe.theirs;
  options.keep_fd = sockets.theirs;
  try {
    process_ = Subprocess::spawn(loop_, options, [this](const ExitStatus& status) {
      exit_status_ = status;
      ended_ = true;
    });
  } catch (const Error&) {
    for (const int fd : {sockets.ours, sockets.theirs, pipe.ours, pipe.theirs}) close(fd);
    throw;
  }
  pid_ = process_->pid();
  close(sockets.theirs);
  close(pipe.theirs);
}

PluginProcess::~PluginProcess() {
  if (socket_ >= 0) end();
  kill(-pid_, SIGKILL);
  process_.reset();
  close(output_);
}

std::string PluginProcess::end() {
  close(std::exchange(socket_, -1));  // the process then destroys its strategy and ends
  const bool by_itself = wait_for_end(kGrace);
  print_rest();
  if (!by_itself) return fmt::format("had not ended after {} s and was killed", kGrace.count() / 1000);
  return exit_status_.signal == 0 && exit_status_.code <= 0 ? "" : text_of(exit_status_);  // -1: unknown
}

bool PluginProcess::wait_for_end(milliseconds limit) {
  const auto end = Clock::now() + limit;
  const uint64_t timer = loop_.at(end, [] {});
  // The plugin's output is read meanwhile, because a full pipe would block the process.
  loop_.watch(output_, [this] {
    if (!take_printed()) loop_.unwatch(output_);
  });
  while (!ended_ && Clock::now() < end) loop_.run_once();
  loop_.unwatch(output_);
  loop_.cancel(timer);
  return ended_;
}

// Called when the connection or the process has ended, or the process will end at once.
void PluginProcess::fail() {
  const bool by_itself = wait_for_end(kGrace);
  print_rest();
  throw ProcessFailed(by_itself ? text_of(exit_status_) : "has closed its connection to dsat");
}

// A child of the process may keep the connection open. So the end of the process counts too, after all data from it was
// read.
void PluginProcess::await(short events) {
  std::array<pollfd, 3> fds{pollfd{socket_, events, 0}, pollfd{output_, POLLIN, 0},
                            pollfd{process_->exit_fd(), POLLIN, 0}};
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) {
      print_rest();
      throw ProcessFailed(
          fmt::format("has not answered for {:g} s (--plugin-timeout)", static_cast<double>(timeout_.count()) / 1000));
    }
    const int ready = poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left, 1'000'000)));
    if (ready <= 0) continue;
    if ((fds[1].revents & POLLIN) != 0) take_printed();
    if (fds[1].revents != 0 && (fds[1].revents & POLLIN) == 0) fds[1].fd = -1;  // its output is closed
    if (fds[0].revents != 0) return;
    if (fds[2].revents == 0) continue;
    if (poll(fds.data(), 1, 0) == 1) return;
    fail();
  }
}

bool PluginProcess::take_printed() {
  std::array<char, 4096> chunk{};
  const ssize_t got = read(output_, chunk.data(), chunk.size());
  for (ssize_t i = 0; i < got; ++i) {
    if (chunk[static_cast<size_t>(i)] != '\n') {
      if (line_.size() < kMaxLineBytes) line_ += chunk[static_cast<size_t>(i)];
      continue;
    }
    for (const std::string& line : printable_lines(line_)) printed_(line);
    line_.clear();
  }
  return got != 0;
}

void PluginProcess::print_rest() {
  for (int i = 0; i < 16; ++i) take_printed();
  for (const std::string& line : printable_lines(line_)) printed_(line);
  line_.clear();
}

void PluginProcess::send(const std::string& frame) {
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t written = ::send(socket_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (written >= 0) {
      sent += static_cast<size_t>(written);
    } else if (errno == EAGAIN) {
      await(POLLOUT);
    } else if (errno != EINTR) {
      fail();
    }
  }
}

void PluginProcess::receive() {
  std::string chunk(kChunkBytes, '\0');
  const ssize_t got = recv(socket_, chunk.data(), chunk.size(), 0);
  if (got > 0) return reader_.append(chunk.data(), static_cast<size_t>(got));
  if (got < 0 && errno == EINTR) return;
  if (got < 0 && errno == EAGAIN) return await(POLLIN);
  fail();
}

void PluginProcess::call(const Json& request, const OnMessage& on_message, const std::optional<std::string>& bytes) {
  renew_deadline();
  send(framed(request));
  if (bytes) send(framed_bytes(*bytes));
  try {
    while (true) {
      while (const std::optional<Message> message = reader_.next()) {
        if (on_message(*message)) return;
      }
      receive();
    }
  } catch (const Error& error) {
    if (error.code() != DSAT_DATA_LOSS) throw;
    throw ProcessFailed(error.what());
  } catch (const Json::exception&) {
    throw ProcessFailed("sent a message that makes no sense");
  }
}

}  // namespace dsat::host
