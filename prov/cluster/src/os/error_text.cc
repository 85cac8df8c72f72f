#include "os/error_text.h"

#include <system_error>

namespace cluster::os {
namespace {

const char* cure_for(int error) {
  switch (error) {
    case EMFILE: return ": raise ulimit -n";
    case ENFILE: return ": raise fs.file-max";
    default: return "";
  }
}

}  // namespace

std::string error_text(int error) { return std::generic_category().message(error) + cure_for(error); }

std::string failed(const char* call) { return std::string(call) + ": " + error_text(errno); }

}  // namespace cluster::os
