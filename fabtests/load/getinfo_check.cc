// Asks the libfabric named on the command line for the provider `cluster`, in all the ways that
// programs ask. FI_PROVIDER_PATH says where the plugin lies. Exit status 0: everything held.
//
//   getinfo_check LIBFABRIC         all questions
//   getinfo_check LIBFABRIC count   only prints how many entries fi_getinfo has without hints
//   getinfo_check LIBFABRIC beside ANOTHER   the same for both, one after the other in this process
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "getinfo_checks.h"

namespace {

void print_count(const load::LibfabricLibrary& core) {
  const load::GetinfoResult answer = load::ask(core.calls, {.version = core.version}, nullptr);
  int count = 0;
  for (const fi_info* info = answer.list.get(); info != nullptr; info = info->next) ++count;
  std::printf("%d\n", count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: getinfo_check LIBFABRIC [count | beside ANOTHER]\n");
    return 2;
  }
  setenv("FI_PROVIDER", "cluster", 1);
  const load::LibfabricLibrary core = load::open_library(argv[1]);
  if (argc > 2) {
    print_count(core);
    if (argc > 3 && std::strcmp(argv[2], "beside") == 0) print_count(load::open_library(argv[3]));
    return 0;
  }
  load::Expectations verdict;
  load::check_every_version(core, verdict);
  load::check_granted_hints(core, verdict);
  load::check_refused_hints(core, verdict);
  load::check_addresses(core, verdict);
  load::check_open_endpoint(core, verdict);
  std::printf("libfabric %u.%u: %d checks, %d failed\n", FI_MAJOR(core.version), FI_MINOR(core.version),
              verdict.checks(), verdict.failures());
  return verdict.failures() == 0 ? 0 : 1;
}
