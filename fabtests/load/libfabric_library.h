// A libfabric chosen at run time: opened by path, its functions taken by name, so that one program
// asks any of them. What the headers declare inline works on objects of any core.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <string>

namespace load {

/// fi_getinfo and what belongs to it, in one version of their symbols.
struct InfoCalls {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
};

struct LibfabricLibrary {
  InfoCalls calls;      ///< the newest, as a program built against this core gets them
  InfoCalls old_calls;  ///< as a program built against 1.17 gets them (symbol version FABRIC_1.3)
  decltype(&::fi_fabric) fabric = nullptr;
  std::uint32_t version = 0;
};

/// Ends the program with a word on stderr if `path` is no libfabric.
LibfabricLibrary open_library(const char* path);

struct FreeInfo {
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  void operator()(fi_info* info) const { freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

inline Info new_hints(const InfoCalls& calls) {
  return Info(calls.dupinfo(nullptr), FreeInfo{calls.freeinfo});
}

struct GetinfoArguments {
  std::uint32_t version = 0;
  const char* node = nullptr;
  const char* service = nullptr;
  std::uint64_t flags = 0;
};

struct GetinfoResult {
  int error = 0;
  Info list;
};

inline GetinfoResult ask(const InfoCalls& calls, const GetinfoArguments& question, const fi_info* hints) {
  fi_info* list = nullptr;
  const int error =
      calls.getinfo(question.version, question.node, question.service, question.flags, hints, &list);
  return {error, Info(list, FreeInfo{calls.freeinfo})};
}

}  // namespace load
