#include "os/verbs_library.h"

#include <dlfcn.h>

#include <memory>
#include <mutex>

#include "os/cancellation.h"

namespace cluster::os {
namespace {

// The versions of the library's symbols, which stay the same as long as its soname does.
constexpr const char* kVerbsVersion = "IBVERBS_1.1";
constexpr const char* kVerbsGidVersion = "IBVERBS_1.11";  // rdma-core 32

template <typename Function>
bool find(void* library, const char* name, const char* version, Function& function) {
  function = reinterpret_cast<Function>(dlvsym(library, name, version));
  return function != nullptr;
}

bool find_all(void* library, VerbsLibrary& f, std::string& missing) {
  const auto need = [&](const char* name, auto& function, const char* version = kVerbsVersion) {
    if (find(library, name, version, function)) return true;
    missing = std::string(name) + "@" + version;
    return false;
  };
  return need("ibv_fork_init", f.fork_init) && need("ibv_get_device_list", f.get_device_list) &&
         need("ibv_free_device_list", f.free_device_list) && need("ibv_get_device_name", f.get_device_name) &&
         need("ibv_open_device", f.open_device) && need("ibv_close_device", f.close_device) &&
         need("ibv_query_device", f.query_device) && need("ibv_query_port", f.query_port) &&
         need("_ibv_query_gid_table", f.query_gid_table, kVerbsGidVersion) &&
         need("ibv_alloc_pd", f.alloc_pd) && need("ibv_dealloc_pd", f.dealloc_pd) &&
         need("ibv_reg_mr", f.reg_mr) && need("ibv_dereg_mr", f.dereg_mr) &&
         need("ibv_rereg_mr", f.rereg_mr) &&
         need("ibv_create_comp_channel", f.create_comp_channel, "IBVERBS_1.0") &&
         need("ibv_destroy_comp_channel", f.destroy_comp_channel, "IBVERBS_1.0") &&
         need("ibv_create_cq", f.create_cq) && need("ibv_destroy_cq", f.destroy_cq) &&
         need("ibv_create_qp", f.create_qp) && need("ibv_modify_qp", f.modify_qp) &&
         need("ibv_destroy_qp", f.destroy_qp) && need("ibv_create_ah", f.create_ah) &&
         need("ibv_destroy_ah", f.destroy_ah) && need("ibv_get_cq_event", f.get_cq_event) &&
         need("ibv_ack_cq_events", f.ack_cq_events) && need("ibv_get_async_event", f.get_async_event) &&
         need("ibv_ack_async_event", f.ack_async_event);
}

struct LoadedVerbs {
  VerbsLibrary functions{};
  bool complete = false;
  std::string reason;
};

std::unique_ptr<LoadedVerbs> load_verbs(const std::string& path) {
  auto loaded = std::make_unique<LoadedVerbs>();
  const PutOffCancellation off;  // the constructors of the library may reach a cancellation point
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded->reason = path + " cannot be loaded (install libibverbs1 and ibverbs-providers)";
    return loaded;
  }
  std::string missing;
  loaded->complete = find_all(library, loaded->functions, missing);
  // Before Linux 5.12, a fork can give the process a copy of a page, and the device keeps the original. The
  // library prevents this only if fork_init() is called before the first use.
  if (loaded->complete) loaded->functions.fork_init();
  if (!loaded->complete) loaded->reason = path + " has no " + missing + " (rdma-core 32 or later has it)";
  return loaded;
}

}  // namespace

const VerbsLibrary* load_verbs_library(const std::string& path, std::string& reason) {
  static std::mutex mutex;
  static const LoadedVerbs* loaded = nullptr;  // never freed: links may exist until the process ends
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) loaded = load_verbs(path).release();
  if (!loaded->complete) reason = loaded->reason;
  return loaded->complete ? &loaded->functions : nullptr;
}

}  // namespace cluster::os
