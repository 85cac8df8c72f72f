#include "provider/provider.h"

#include <rdma/fi_errno.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

#include "api/fabric.h"
#include "api/inherited_fids.h"
#include "os/descriptor.h"
#include "provider/unknown_options.h"

namespace cluster::provider {
namespace {

Options read_options(fi_provider& handle, Log& log, bool& refused) {
  for (const OptionRow& row : option_rows()) {
    fi_param_define(&handle, row.name, FI_PARAM_STRING, "%s", help_text(row).c_str());
  }
  std::vector<std::string> errors;
  Options options(
      [&](const OptionRow& row) -> std::optional<std::string> {
        if (row.kind == OptionKind::secret) {  // libfabric would write it to its log
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

}  // namespace

Provider::Provider(fi_provider& handle)
    : log_(handle),
      options_(read_options(handle, log_, refused_)),
      getinfo_(log_, options_, handle.fi_version, handle.version),
      machine_(log_, options_) {}

int Provider::get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
                       const fi_info* hints, fi_info** list) {
  if (refused_) return -FI_ENODATA;
  try {
    return getinfo_.get(version, node, service, flags, hints, list);
  } catch (const std::bad_alloc&) {  // no exception may reach libfabric, which is C
    return -FI_ENOMEM;
  } catch (const std::exception& failure) {
    log_.warn("%s", failure.what());
    return -FI_EOTHER;
  }
}

int Provider::open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
  os::install_fork_guard({.prepare = api::lock_fids_to_inherit,
                          .in_parent = api::unlock_fids_to_inherit,
                          .in_child = api::disable_inherited_fids});
  return api::open_fabric(attributes, fabric, context, machine_);
}

}  // namespace cluster::provider
