#include "libfabric.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <type_traits>

namespace coll {
namespace {

/// Finds the first loaded library whose name begins with "libfabric".
int find_loaded(dl_phdr_info* object, std::size_t, void* found) {
  const char* const slash = std::strrchr(object->dlpi_name, '/');
  const char* const name = slash == nullptr ? object->dlpi_name : slash + 1;
  if (std::strncmp(name, "libfabric", 9) != 0) return 0;
  *static_cast<std::string*>(found) = object->dlpi_name;
  return 1;
}

}  // namespace

bool Libfabric::load(std::string& reason) {
  std::string file;
  dl_iterate_phdr(find_loaded, &file);
  void* const object = dlopen(file.empty() ? "libfabric.so.1" : file.c_str(), RTLD_NOW);
  if (object == nullptr) {
    reason = dlerror();
    return false;
  }
  bool complete = true;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(object, name));
    complete = complete && function != nullptr;
  };
  find("fi_getinfo", getinfo);
  find("fi_freeinfo", freeinfo);
  find("fi_dupinfo", dupinfo);
  find("fi_fabric", fabric);
  find("fi_strerror", strerror);
  if (!complete) reason = "the libfabric of this process lacks functions";
  return complete;
}

}  // namespace coll
