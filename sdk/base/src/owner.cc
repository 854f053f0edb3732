// Walks a path part by part, as the kernel does, because each link on the way may be another user's. An opened file is
// checked by its descriptor, so nobody can exchange it in between.
#include "dsat/base/owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace dsat {

namespace fs = std::filesystem;

namespace {

// In the reverse order: the first part is at the end.
void push_parts(const fs::path& path, std::vector<fs::path>& parts) {
  std::vector<fs::path> more(path.begin(), path.end());
  parts.insert(parts.end(), more.rbegin(), more.rend());
}

std::string why_others_own(const struct stat& info, const fs::path& file) {
  if (is_trusted(info.st_uid)) return "";
  struct stat folder {};
  const fs::path parent = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (stat(parent.c_str(), &folder) == 0 && folder.st_uid == info.st_uid) return "";
  return fmt::format("it belongs to another user (uid {})", info.st_uid);
}

std::string why_not_opened(const struct stat& info, const fs::path& file) {
  if (!S_ISREG(info.st_mode)) return "it is no regular file";
  if (info.st_nlink > 1) return "it has another name elsewhere (a hard link)";
  return why_others_own(info, file);
}

}  // namespace

bool is_trusted(uid_t owner) { return owner == geteuid() || owner == 0; }

std::optional<fs::path> link_of_others(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::error_code error;
  std::vector<fs::path> parts;
  push_parts(fs::absolute(path, error), parts);
  fs::path at = "/";
  for (int links = 0; !parts.empty() && links <= kMostLinks;) {
    const fs::path part = parts.back();
    parts.pop_back();
    if (part.empty() || part == ".") continue;
    if (part.is_absolute() || part == "..") {
      at = part == ".." ? at.parent_path() : fs::path("/");
      continue;
    }
    struct stat info {};
    if (lstat((at / part).c_str(), &info) != 0) return std::nullopt;
    if (!S_ISLNK(info.st_mode)) {
      at /= part;
      continue;
    }
    if (!is_trusted(info.st_uid)) return at / part;
    push_parts(fs::read_symlink(at / part, error), parts);
    ++links;
  }
  return std::nullopt;
}

std::string why_others_control(const fs::path& folder) {
  if (const auto link = link_of_others(folder)) {
    std::error_code error;
    const bool is_itself = *link == fs::absolute(folder, error);
    return fmt::format("{} is a link that another user made", is_itself ? "it" : link->string());
  }
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return "";
  if (!is_trusted(info.st_uid)) return fmt::format("it belongs to another user (uid {})", info.st_uid);
  if ((info.st_mode & S_IWOTH) != 0) return "everybody can write to it";
  return "";
}

std::string why_others_made(const fs::path& file) {
  struct stat info {};
  if (lstat(file.c_str(), &info) != 0) return "";
  return S_ISLNK(info.st_mode) ? "it is a link" : why_others_own(info, file);
}

OpenedFile open_own_file(const fs::path& file, int flags, mode_t mode) {
  OpenedFile opened;
  opened.fd = open(file.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, mode);
  struct stat info {};
  if (opened.fd < 0 || fstat(opened.fd, &info) != 0) {
    opened.error = errno;
    opened.problem = opened.error == ELOOP    ? "it is a link"
                     : opened.error == ENXIO  ? "it is no regular file"
                     : opened.error == EISDIR ? "it is a folder"
                                              : std::strerror(opened.error);
  } else {
    opened.problem = why_not_opened(info, file);
  }
  if (!opened.problem.empty() && opened.fd >= 0) close(std::exchange(opened.fd, -1));
  return opened;
}

}  // namespace dsat
