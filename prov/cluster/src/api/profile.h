// fi_profile(3), which libfabric has since 2.0: the structs of <rdma/fi_profile.h>, with our names,
// because the headers that we are compiled with are older. Their layout is libfabric's and final.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include <cstddef>
#include <cstdint>

namespace cluster::api::profile {

inline constexpr const char* kExtension = "fi_profile_ops";
inline constexpr std::size_t kClass = 30;                    ///< FI_CLASS_PROFILE
inline constexpr std::uint32_t kUnexpectedMessageCount = 0;  ///< FI_VAR_UNEXP_MSG_CNT
/// Our own variables: this bit and the place in counters.def. Places may change from version to
/// version: programs find variables by name.
inline constexpr std::uint32_t kOwnVariable = FI_PROV_SPECIFIC;

struct Handle;

struct Description {
  std::uint32_t id;
  int type_of_type;  ///< 0: a datatype as in atomics
  union {
    fi_datatype primitive;
    fi_type defined;
  } type;
  std::uint64_t flags;
  std::size_t size;
  const char* name;
  const char* text;
};

using Callback = int (*)(Handle* handle, Description* event, void* parameter, std::size_t size,
                         void* context);

struct Ops {
  std::size_t size;
  void (*reset)(Handle* handle, std::uint64_t flags);
  ssize_t (*query_variables)(Handle* handle, Description* list, std::size_t* count);
  ssize_t (*query_events)(Handle* handle, Description* list, std::size_t* count);
  ssize_t (*read)(Handle* handle, std::uint32_t id, void* data, std::size_t* size);
  int (*register_callback)(Handle* handle, std::uint32_t event, Callback callback, void* context);
  void (*start_reads)(Handle* handle, std::uint64_t flags);
  void (*end_reads)(Handle* handle, std::uint64_t flags);
};

struct Handle {
  ::fid fid;
  Ops* ops;
};

/// fi_open_ops with the name above answers with the address of Handle::ops.
int open(::fid* endpoint, Ops*** ops, void* context) noexcept;

}  // namespace cluster::api::profile
