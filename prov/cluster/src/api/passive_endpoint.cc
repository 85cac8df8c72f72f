#include "api/passive_endpoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "api/connection_event.h"
#include "api/ep_options.h"
#include "api/sockaddr_io.h"
#include "base/end_of_memory.h"
#include "base/enumeration.h"
#include "carrier/registered_memory.h"

namespace cluster::api {
namespace {

constinit fi_ops passive_fid_ops = fid_ops({.close = close_object<PassiveEndpoint>,
                                            .bind = Method<&PassiveEndpoint::bind>::entry,
                                            .control = Method<&PassiveEndpoint::control>::entry});

constinit fi_ops_ep passive_ops = [] {
  auto ops = stub_ops<fi_ops_ep>(kEnosys);
  ops.getopt = Method<&PassiveEndpoint::get_option>::entry;
  return ops;
}();

constinit fi_ops_cm passive_cm_ops = [] {
  auto ops = stub_ops<fi_ops_cm>(kEnosys);
  ops.setname = Method<&PassiveEndpoint::set_name>::entry;
  ops.getname = Method<&PassiveEndpoint::get_name>::entry;
  ops.listen = Method<&PassiveEndpoint::listen>::entry;
  ops.reject = Method<&PassiveEndpoint::reject>::entry;
  return ops;
}();

/// Replaces an address of an fi_info. Returns false if there is no memory.
bool replace_address(const SocketAddress& address, void*& target, std::size_t& size) {
  sockaddr_storage storage;
  size = address.to(storage);
  std::free(target);
  target = std::malloc(size);
  if (target == nullptr) return false;
  std::memcpy(target, &storage, size);
  return true;
}

/// Returns the key of the endpoint or, if it has none, the key of the domain.
GivenAuthKey key_of(const fi_info& info, std::uint32_t version) {
  const GivenAuthKey key(attributes_at(info.ep_attr), version);
  return key.size != 0 ? key : GivenAuthKey(attributes_at(info.domain_attr), version);
}

}  // namespace

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, InfoPointer info, void* context)
    : fid_pep{{FI_CLASS_PEP, context, &passive_fid_ops}, &passive_ops, &passive_cm_ops},
      fabric_(fabric),
      info_(std::move(info)),
      requested_name_(SocketAddress::from(static_cast<const sockaddr*>(info_->src_addr), info_->src_addrlen)),
      auth_key_(key_of(*info_, fabric.api_version)) {
  fabric.requests().enter(fid, *this);
}

PassiveEndpoint::~PassiveEndpoint() {
  fabric_->requests().leave(fid);
  if (engine_ == nullptr) return;
  if (listening_) {
    engine_->with_connection([&](engine::ConnectionEndpoint& end) {
      closing_ = true;
      for (const connection::ConnectRequest& request : fabric_->requests().take_all(this))
        end.listener().reject(request, {});
    });
    eq_->progress().remove(*engine_);
  }
  engine_.reset();
  if (eq_) eq_->forget(fid);
}

SocketAddress PassiveEndpoint::give_up_name() {
  const std::lock_guard guard(mutex_);
  if (listening_ || ensure_engine() != 0) return {};
  const SocketAddress given = engine_->name();
  engine_.reset();
  return given;
}

int PassiveEndpoint::open(Fabric& fabric, const fi_info* info, fid_pep** handle, void* context) {
  if (info == nullptr || number_of(attributes_at(info->ep_attr).type) != FI_EP_MSG) return -FI_EINVAL;
  for (const GivenAuthKey& key : {GivenAuthKey(attributes_at(info->ep_attr), fabric.api_version),
                                  GivenAuthKey(attributes_at(info->domain_attr), fabric.api_version)}) {
    if (const char* const refusal = key.refusal()) {
      fabric.platform().log().warn("cannot open a passive endpoint: %s", refusal);
      return -FI_EINVAL;
    }
  }
  InfoPointer copy(fabric.platform().copy_info(*info), {&fabric.platform()});
  if (copy == nullptr) return -FI_ENOMEM;
  *handle = new PassiveEndpoint(fabric, std::move(copy), context);
  return 0;
}

int PassiveEndpoint::bind(fid_t object, std::uint64_t) {
  const std::lock_guard guard(mutex_);
  if (object == nullptr || object->fclass != FI_CLASS_EQ || listening_) return -FI_EINVAL;
  eq_.set(object_of<Eq>(object));
  return 0;
}

int PassiveEndpoint::control(int command, void* argument) {
  if (command != FI_BACKLOG) return -FI_ENOSYS;
  const std::lock_guard guard(mutex_);
  const int backlog = argument != nullptr ? *static_cast<const int*>(argument) : -1;
  if (backlog < 0 || listening_) return -FI_EINVAL;
  backlog_ = static_cast<std::size_t>(std::max(backlog, 1));
  return 0;
}

int PassiveEndpoint::ensure_engine() {
  if (engine_ != nullptr) return 0;
  int error = 0;
  engine_ = fabric_->platform().build_engine({requested_name_, engine::EndpointType::rdm, auth_key_.bytes(),
                                              nullptr, std::make_shared<carrier::RegisteredMemory>()},
                                             error);
  if (engine_ == nullptr) return error > 0 ? -error : -FI_EOTHER;
  if (attributes_at(info_->domain_attr).control_progress == FI_PROGRESS_AUTO) engine_->enable_auto_progress();
  return 0;
}

int PassiveEndpoint::listen() {
  const std::lock_guard guard(mutex_);
  if (listening_) return -FI_EOPBADSTATE;
  if (!eq_) return -FI_ENOEQ;
  if (const int error = ensure_engine()) return error;
  name_ = engine_->name();
  engine_->open_connection(static_cast<connection::RequestListener&>(*this));
  engine_->attach(engine_->connection_addresses(), {});
  eq_->progress().add(*engine_);
  listening_ = true;
  return 0;
}

int PassiveEndpoint::reject(fid_t handle, const void* data, std::size_t size) {
  const std::lock_guard guard(mutex_);
  if (!listening_) return -FI_EOPBADSTATE;
  const auto request = fabric_->requests().take(handle);
  if (!request) return -FI_EINVAL;
  engine_->with_connection(
      [&](engine::ConnectionEndpoint& end) { end.listener().reject(*request, private_data(data, size)); });
  return 0;
}

void PassiveEndpoint::hand_over(const connection::ConnectRequest& request, const SocketAddress& taker) {
  engine_->with_connection(
      [&](engine::ConnectionEndpoint& end) { end.listener().hand_over(request, taker); });
}

int PassiveEndpoint::get_name(void* address, std::size_t* size) {
  if (size == nullptr) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  if (const int error = ensure_engine()) return error;
  return write_sockaddr(engine_->name(), address, *size) ? 0 : -FI_ETOOSMALL;
}

int PassiveEndpoint::set_name(void* address, std::size_t size) {
  const std::lock_guard guard(mutex_);
  if (engine_ != nullptr) return -FI_EOPBADSTATE;
  const SocketAddress name = SocketAddress::from(static_cast<const sockaddr*>(address), size);
  if (name.empty()) return -FI_EINVAL;
  requested_name_ = name;
  return 0;
}

int PassiveEndpoint::get_option(int level, int name, void* value, std::size_t* size) {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
  return write_cm_data_size(value, size);
}

PassiveEndpoint::InfoPointer PassiveEndpoint::info_for(const connection::ConnectRequest& request) const {
  InfoPointer info(fabric_->platform().copy_info(*info_), info_.get_deleter());
  const bool complete = info != nullptr && replace_address(name_, info->src_addr, info->src_addrlen) &&
                        replace_address(request.asker, info->dest_addr, info->dest_addrlen);
  if (!complete) info.reset();
  return info;
}

bool PassiveEndpoint::requested(const connection::ConnectRequest& request, ConstBytes data) {
  if (closing_) return false;
  bool reported = false;
  fid_t request_handle = nullptr;
  enough_memory_for([&] {
    InfoPointer info = info_for(request);
    if (info == nullptr) return;
    request_handle = fabric_->requests().add(request, this, backlog_);
    if (request_handle == nullptr) return;
    info->handle = request_handle;
    eq_->add(FI_CONNREQ, fid, connection_event(fid, info.get(), data), info.get());
    info.release();
    reported = true;
  });
  if (!reported && request_handle != nullptr) fabric_->requests().take(request_handle);
  return reported;
}

}  // namespace cluster::api
