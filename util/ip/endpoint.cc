#include "endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <cstring>
#include <stdexcept>

#include "packet.h"

namespace cluster::ip {
namespace {

constexpr std::size_t kCompletions = 4096;

void must(int error, const std::string& what) {
  if (error == 0) return;
  const char* advice = "";
  if (error == -FI_EADDRINUSE) advice = " (another program uses the port: --port chooses another)";
  if (error == -FI_EACCES) advice = " (FI_LOG_LEVEL=warn says why the key is refused)";
  throw std::runtime_error(what + ": " + fi_strerror(-error) + advice);
}

fi_info* find(const std::string& address, std::uint16_t port) {
  const std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints(fi_allocinfo(), fi_freeinfo);
  if (!hints) throw std::bad_alloc();
  hints->caps = FI_MSG | FI_SOURCE | FI_MULTI_RECV;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = ::strdup("cluster");
  hints->domain_attr->threading = FI_THREAD_DOMAIN;  // one thread uses it
  hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  // Packets of a connection arrive in the order in which they left.
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  fi_info* found = nullptr;
  must(fi_getinfo(FI_VERSION(1, 17), address.c_str(), std::to_string(port).c_str(), FI_SOURCE, hints.get(),
                  &found),
       "the provider cluster offers no endpoint at " + address + " (\"cluster-info --host\" says why)");
  return found;
}

}  // namespace

Endpoint::Endpoint(const std::string& address, std::uint16_t port) : info_(find(address, port)) {
  const auto take = [](auto& owned, auto* made) { owned.reset(made); };
  const std::string where = "endpoint at " + address + ", port " + std::to_string(port);
  fid_fabric* fabric = nullptr;
  must(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  take(fabric_, fabric);
  fid_domain* domain = nullptr;
  must(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  take(domain_, domain);
  fi_cq_attr cq_attributes = {};
  cq_attributes.format = FI_CQ_FORMAT_DATA;
  cq_attributes.size = kCompletions;
  cq_attributes.wait_obj = FI_WAIT_FD;
  fid_cq* cq = nullptr;
  must(fi_cq_open(domain, &cq_attributes, &cq, nullptr), "fi_cq_open");
  take(cq_, cq);
  fi_av_attr av_attributes = {};
  av_attributes.type = FI_AV_TABLE;
  fid_av* av = nullptr;
  must(fi_av_open(domain, &av_attributes, &av, nullptr), "fi_av_open");
  take(av_, av);
  fid_ep* ep = nullptr;
  must(fi_endpoint(domain, info_.get(), &ep, nullptr), where);
  take(ep_, ep);
  must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
  must(fi_enable(ep), where);
  std::size_t least = kMessageBytesMax;
  must(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
       "FI_OPT_MIN_MULTI_RECV");
  must(fi_control(&cq->fid, FI_GETWAIT, &wait_descriptor_), "FI_GETWAIT");
}

fi_addr_t Endpoint::add(const std::string& address, std::uint16_t port) {
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  if (fi_av_insertsvc(av_.get(), address.c_str(), std::to_string(port).c_str(), &number, 0, nullptr) != 1)
    throw std::runtime_error("the address " + address + " is not of the family of this node's own");
  return number;
}

bool Endpoint::may_sleep() const {
  fid* waits_for[] = {&cq_->fid};
  return fi_trywait(fabric_.get(), waits_for, 1) == 0;
}

std::string Endpoint::cause_of(const fi_cq_err_entry& error) const {
  char text[256];
  const char* detail = fi_cq_strerror(cq_.get(), error.prov_errno, error.err_data, text, sizeof text);
  return std::string(fi_strerror(error.err)) +
         (detail != nullptr && *detail != 0 ? std::string(", ") + detail : "");
}

}  // namespace cluster::ip
