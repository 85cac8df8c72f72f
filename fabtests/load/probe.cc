// Asks the libfabric named on the command line for the provider `cluster`, in all the ways that
// programs ask. FI_PROVIDER_PATH says where the plugin lies. Exit status 0: everything held.
//
//   getinfo_probe LIBFABRIC         all questions
//   getinfo_probe LIBFABRIC count   only prints how many entries fi_getinfo has without hints
//   getinfo_probe LIBFABRIC beside ANOTHER   the same for both, one after the other in this process
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "answers.h"

namespace {

void print_count(const load::Core& core) {
  const load::Answer answer = load::ask(core.calls, {.version = core.version}, nullptr);
  int count = 0;
  for (const fi_info* info = answer.list.get(); info != nullptr; info = info->next) ++count;
  std::printf("%d\n", count);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: getinfo_probe LIBFABRIC [count | beside ANOTHER]\n");
    return 2;
  }
  setenv("FI_PROVIDER", "cluster", 1);
  const load::Core core = load::open_core(argv[1]);
  if (argc > 2) {
    print_count(core);
    if (argc > 3 && std::strcmp(argv[2], "beside") == 0) print_count(load::open_core(argv[3]));
    return 0;
  }
  load::Verdict verdict;
  load::ask_every_version(core, verdict);
  load::ask_what_is_offered(core, verdict);
  load::ask_what_is_not(core, verdict);
  load::ask_for_addresses(core, verdict);
  load::open_an_endpoint(core, verdict);
  std::printf("libfabric %u.%u: %d checks, %d failed\n", FI_MAJOR(core.version), FI_MINOR(core.version),
              verdict.checks(), verdict.failures());
  return verdict.failures() == 0 ? 0 : 1;
}
