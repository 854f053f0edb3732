// Catches exceptions in order, from our own error to the unexpected. An exception of another library that comes this
// far should have been caught where it was thrown.
#include "terminal/failure.h"

#include <fmt/format.h>

#include <filesystem>
#include <new>

#include "dsat/error.h"
#include "terminal/exit_status.h"

namespace dsat::cli {

int guarded(Console& console, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    console.error(error.what());
    return exit_status(error);
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().empty() ? "the file system" : error.path1().string();
    console.error(fmt::format("{}: {}", path, error.code().message()));
  } catch (const Json::exception& error) {
    console.error(
        fmt::format("a file or a plugin gives a value of an unexpected type (JSON error {}): run dsat-host "
                    "plugins, and look at the files that you named",
                    error.id));
  } catch (const std::bad_alloc&) {
    console.error("this machine has no memory left for dsat-host: end other programs and start again");
  } catch (const std::exception& error) {
    console.error(
        fmt::format("a defect of dsat-host ended it, please report it with the command line: {}", error.what()));
  }
  return kFailed;
}

}  // namespace dsat::cli
