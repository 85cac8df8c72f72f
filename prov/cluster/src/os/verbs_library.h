// The functions of libibverbs that the verbs link and the verbs reader call. The plugin loads the library
// when an endpoint first looks for an RDMA device. Therefore the plugin also works on nodes without the
// library. The plugin never unloads the library, because threads and drivers of the library may still exist.
//
// Only verbs_*.cc include this header, directly or through verbs_device.h and verbs_queue.h. A build without
// the headers of libibverbs leaves these files out.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace cluster::os {

/// Calls that the header defines as inline functions (ibv_post_send and the like) need no pointer here: they
/// go through the driver's table in the context. The members have the names of the functions without "ibv_".
struct VerbsLibrary {
  decltype(&::ibv_fork_init) fork_init;
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_get_device_name) get_device_name;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;
  decltype(&::_ibv_query_gid_table) query_gid_table;
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  ibv_mr* (*reg_mr)(ibv_pd*, void* begin, std::size_t size, int access);
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_rereg_mr) rereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_create_ah) create_ah;
  decltype(&::ibv_destroy_ah) destroy_ah;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
};

/// Loads the library once in a process. Returns null if that fails, and writes the cause to `reason`. `path`:
/// the library to load. Later calls ignore `path`.
const VerbsLibrary* load_verbs_library(const std::string& path, std::string& reason);

}  // namespace cluster::os
