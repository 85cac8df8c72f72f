#include "api/connected_end.h"

#include <algorithm>
#include <cstring>

#include "api/connection_event.h"
#include "api/endpoint.h"
#include "api/sockaddr_io.h"
#include "base/end_of_memory.h"

namespace cluster::api {

using connection::ConnectionEnd;
using engine::ConnectionEndpoint;

ConstBytes private_data(const void* data, std::size_t size) {
  if (data == nullptr) return {};
  return as_bytes(data, std::min(size, connection::kPrivateDataMax));
}

std::vector<std::byte> connection_event(struct fid& object, fi_info* info, ConstBytes data) {
  const fi_eq_cm_entry entry{&object, info};
  std::vector<std::byte> event(sizeof entry + data.size());
  std::memcpy(event.data(), &entry, sizeof entry);
  if (!data.empty()) std::memcpy(event.data() + sizeof entry, data.data(), data.size());
  return event;
}

/// Tells the engine about the request first. The asker learns of this endpoint afterwards, and then sends a
/// claim. The engine must recognise this claim.
bool ConnectedEnd::take_request(engine::Engine& engine) {
  if (!request_) return true;
  engine.with_connection([&](ConnectionEndpoint& end) {
    if (end.connection().state() == ConnectionEnd::State::idle)
      end.connection().set_asker(request_->asker, request_->id);
  });
  return endpoint_.domain().fabric().requests().hand_over(handle_, *request_, engine.name());
}

int ConnectedEnd::connect(const void* address, const void* data, std::size_t size) {
  if (address == nullptr || request_) return -FI_EINVAL;
  const SocketAddress passive = parse_sockaddr(address, endpoint_.domain().address_format()).address;
  if (passive.empty() || passive.wildcard() || passive.multicast() || passive.port() == 0) return -FI_EINVAL;
  if (const int error = endpoint_.enable()) return error;
  const std::uint64_t id = endpoint_.domain().platform().random().next();
  return endpoint_.engine()->with_connection([&](ConnectionEndpoint& end) {
    if (end.connection().state() != ConnectionEnd::State::idle) return -FI_EOPBADSTATE;
    asked_ = passive;
    end.connection().connect(passive, id, private_data(data, size));
    return 0;
  });
}

int ConnectedEnd::accept(const void* data, std::size_t size) {
  if (!request_) return -FI_EINVAL;
  if (const int error = endpoint_.enable()) return error;
  return endpoint_.engine()->with_connection([&](ConnectionEndpoint& end) {
    if (end.connection().state() != ConnectionEnd::State::asked) return -FI_EOPBADSTATE;
    if (!endpoint_.domain().fabric().requests().take(handle_, *request_))
      return -FI_EOPBADSTATE;  // the application has rejected the request
    end.connection().accept(private_data(data, size));
    return 0;
  });
}

int ConnectedEnd::shut_down(std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (endpoint_.engine() == nullptr) return -FI_ENOTCONN;
  return endpoint_.engine()->with_connection(
      [](ConnectionEndpoint& end) { return end.connection().shut_down() ? 0 : -FI_ENOTCONN; });
}

int ConnectedEnd::get_peer(void* address, std::size_t* size) {
  if (size == nullptr) return -FI_EINVAL;
  if (endpoint_.engine() == nullptr) return -FI_ENOTCONN;
  const SocketAddress peer = request_ ? request_->asker : asked_;
  if (peer.empty()) return -FI_ENOTCONN;
  return write_sockaddr(peer, address, *size) ? 0 : -FI_ETOOSMALL;
}

void ConnectedEnd::cancel_receives() {
  guarded([&] {
    endpoint_.engine()->with_connection([](ConnectionEndpoint& end) { end.cancel_receives(); });
    return 0;
  });
}

void ConnectedEnd::close() {
  closing_.store(true);
  if (endpoint_.engine() == nullptr) return;
  if (request_) endpoint_.domain().fabric().requests().take(handle_, *request_);
  endpoint_.engine()->with_connection([](ConnectionEndpoint& end) { end.connection().shut_down(); });
}

void ConnectedEnd::connected(ConstBytes data) {
  phase_.store(Phase::connected, std::memory_order_release);
  if (closing_.load()) return;
  Eq& eq = *endpoint_.bound().eq();
  if (!enough_memory_for(
          [&] { eq.add(FI_CONNECTED, endpoint_.fid, connection_event(endpoint_.fid, nullptr, data)); }))
    eq.note_lost_event();
}

void ConnectedEnd::refused(Status cause, ConstBytes data) {
  phase_.store(Phase::over, std::memory_order_release);
  if (!closing_.load()) endpoint_.bound().eq()->report_error(endpoint_.fid, cause, data);
}

void ConnectedEnd::ended(const SocketAddress& peer, Status cause) {
  phase_.store(Phase::over, std::memory_order_release);
  if (closing_.load()) return;
  if (cause != Status::ok) return endpoint_.report_loss(peer, cause);
  Eq& eq = *endpoint_.bound().eq();
  if (!enough_memory_for(
          [&] { eq.add(FI_SHUTDOWN, endpoint_.fid, connection_event(endpoint_.fid, nullptr, {})); }))
    eq.note_lost_event();
}

}  // namespace cluster::api
