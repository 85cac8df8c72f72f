"""Compiles the module _fabric: those calls and types of libfabric that put.py uses, for Python.

    python3 fabric_build.py         # Debian: python3-cffi python3-dev gcc libfabric-dev

Most calls of libfabric are inline functions of its headers, so they can only be had through a compiler. Structures are
given by the members that are used; `...` lets the compiler find the rest.
"""
import cffi

builder = cffi.FFI()
builder.cdef("""
    enum { FI_EP_RDM, FI_AV_TABLE, FI_CQ_FORMAT_DATA, FI_PROGRESS_MANUAL, ... };
    static const uint64_t FI_MSG, FI_RMA, FI_SOURCE, FI_SEND, FI_RECV, FI_TRANSMIT, FI_READ, FI_WRITE, FI_REMOTE_READ,
                          FI_REMOTE_WRITE, FI_DELIVERY_COMPLETE, FI_REMOTE_CQ_DATA;
    static const int FI_EAGAIN, FI_EAVAIL, FI_MR_LOCAL, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY;

    struct fid { ...; };
    struct fi_tx_attr { uint64_t op_flags; ...; };
    struct fi_ep_attr { int type; ...; };
    struct fi_domain_attr { int mr_mode; int data_progress; ...; };
    struct fi_fabric_attr { char *prov_name; ...; };
    struct fi_info {
        uint64_t caps;
        struct fi_tx_attr *tx_attr;
        struct fi_ep_attr *ep_attr;
        struct fi_domain_attr *domain_attr;
        struct fi_fabric_attr *fabric_attr;
        ...;
    };
    struct fid_fabric { struct fid fid; ...; };
    struct fid_domain { struct fid fid; ...; };
    struct fid_ep { struct fid fid; ...; };
    struct fid_cq { struct fid fid; ...; };
    struct fid_av { struct fid fid; ...; };
    struct fid_mr { struct fid fid; ...; };
    struct fi_cq_attr { int format; size_t size; ...; };
    struct fi_av_attr { int type; size_t count; ...; };
    struct fi_cq_data_entry { uint64_t flags; uint64_t data; ...; };
    struct fi_cq_err_entry { int err; ...; };

    struct fi_info *fi_allocinfo(void);
    void fi_freeinfo(struct fi_info *info);
    int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    const char *fi_strerror(int number);
    int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
    int fi_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
    int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
    int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
    int fi_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
    int fi_ep_bind(struct fid_ep *ep, struct fid *fid, uint64_t flags);
    int fi_enable(struct fid_ep *ep);
    int fi_getname(struct fid *fid, void *address, size_t *length);
    int fi_av_insert(struct fid_av *av, const void *address, size_t count, uint64_t *fi_addr, uint64_t flags, void *context);
    int fi_mr_reg(struct fid_domain *domain, const void *buffer, size_t length, uint64_t access, uint64_t offset,
                  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context);
    void *fi_mr_desc(struct fid_mr *mr);
    uint64_t fi_mr_key(struct fid_mr *mr);
    ssize_t fi_writedata(struct fid_ep *ep, const void *buffer, size_t length, void *desc, uint64_t data,
                         uint64_t destination, uint64_t address, uint64_t key, void *context);
    ssize_t fi_cq_read(struct fid_cq *cq, void *buffer, size_t count);
    ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags);
    int fi_close(struct fid *fid);
""")
builder.set_source("_fabric", """
    #include <rdma/fabric.h>
    #include <rdma/fi_cm.h>
    #include <rdma/fi_domain.h>
    #include <rdma/fi_endpoint.h>
    #include <rdma/fi_errno.h>
    #include <rdma/fi_rma.h>
""", libraries=["fabric"])

if __name__ == "__main__":
    builder.compile()
