// Defines fi_prov_ini, the only symbol that the plugin exports. libfabric calls fi_prov_ini when it loads the
// file, once for each path at which it finds the file. libfabric holds a lock during the call, so fi_prov_ini
// must not call functions such as fi_getinfo. The provider reports the version of the core as its own API
// version, because libfabric hides a provider with an older API version from callers with a newer one.
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "api/fabric.h"
#include "api/fid_object.h"
#include "base/log.h"
#include "os/descriptor.h"
#include "provider/core_binding.h"
#include "provider/getinfo.h"
#include "provider/machine.h"
#include "provider/options.h"

namespace cluster::provider {
namespace {

/// Writes log lines to libfabric's log. FI_LOG_LEVEL and FI_LOG_PROV select which lines appear. Without
/// FI_LOG_LEVEL, libfabric writes nothing, not even warnings.
class CoreLog final : public Log {
 public:
  explicit CoreLog(const fi_provider& provider) : provider_(provider) {}
  bool enabled(LogLevel level) const override {
    return fi_log_enabled(&provider_, level_of(level), FI_LOG_CORE) != 0;
  }
  void write(LogLevel level, const char* line) override {
    const int saved = errno;
    fi_log(&provider_, level_of(level), FI_LOG_CORE, "cluster", 0, "%s\n", line);
    errno = saved;
  }

 private:
  static fi_log_level level_of(LogLevel level) { return level == LogLevel::info ? FI_LOG_INFO : FI_LOG_WARN; }

  const fi_provider& provider_;
};

Options read_options(fi_provider& handle, Log& log, bool& refused) {
  for (const OptionRow& row : option_rows()) {
    fi_param_define(&handle, row.name, FI_PARAM_STRING, "%s", help_text(row).c_str());
  }
  std::vector<std::string> errors;
  Options options(
      [&](const OptionRow& row) -> std::optional<std::string> {
        // A secret is read without libfabric, because libfabric would write the value to its log.
        if (row.kind == OptionKind::secret) {
          const char* const secret = secure_getenv(variable(row).c_str());
          return secret != nullptr ? std::optional<std::string>(secret) : std::nullopt;
        }
        char* value = nullptr;
        if (fi_param_get_str(&handle, row.name, &value) != 0 || value == nullptr) return std::nullopt;
        return std::string(value);
      },
      errors);
  for (const std::string& line : errors) log.warn("%s", line.c_str());
  for (const UnknownOption& unknown : unknown_options(environ)) log.warn("%s", unknown.line.c_str());
  refused = !errors.empty();
  return options;
}

/// The provider of this process: its options, and the objects that use them. fi_prov_ini creates it once, and
/// nothing destroys it.
struct Provider {
  /// Defines the options in the core and reads them. libfabric allows this only while it loads the provider.
  explicit Provider(fi_provider& handle)
      : log(handle),
        options(read_options(handle, log, refused)),
        getinfo(log, options, handle.fi_version, handle.version),
        machine(log, options) {}

  CoreLog log;
  bool refused = false;  ///< an option has a value that is not allowed
  Options options;
  GetInfo getinfo;
  Machine machine;
};

Provider* provider = nullptr;

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** list) {
  if (provider->refused) return -FI_ENODATA;
  try {
    return provider->getinfo.get(version, node, service, flags, hints, list);
  } catch (const std::bad_alloc&) {  // libfabric is C, so no exception may reach it
    return -FI_ENOMEM;
  } catch (const std::exception& failure) {
    provider->log.warn("%s", failure.what());
    return -FI_EOTHER;
  }
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  os::install_fork_guard({.prepare = api::lock_fids_to_inherit,
                          .in_parent = api::unlock_fids_to_inherit,
                          .in_child = api::disable_inherited_fids});
  return api::open_fabric(attributes, fabric, context, provider->machine);
}

/// Does nothing: the provider lives as long as the process, and libfabric may still call it.
void clean_up() {}

constinit fi_provider handle = {
    .version = FI_VERSION(CLUSTER_VERSION_MAJOR, CLUSTER_VERSION_MINOR),  // set by CMake's project()
    .fi_version = 0,
    .context = {},
    .name = "cluster",
    .getinfo = get_info,
    .fabric = open_fabric,
    .cleanup = clean_up,
};

}  // namespace
}  // namespace cluster::provider

extern "C" FI_EXT_INI {
  using namespace cluster::provider;
  try {
    std::string reason;
    if (!bind_core(__builtin_return_address(0), reason)) {
      // This line appears only if a core is already bound, because without a core there is no log.
      FI_WARN(&handle, FI_LOG_CORE, "not loaded: %s\n", reason.c_str());
      return nullptr;
    }
    if (provider == nullptr) {
      handle.fi_version = fi_version();
      provider = new Provider(handle);
    }
    return &handle;
  } catch (const std::exception&) {
    return nullptr;
  }
}
