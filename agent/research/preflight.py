"""Preflights: whether an experiment would fail, or have no effect, before its load is paid.

Only what was really read rules out. Everything else is `unknown` with the reason, and that never rules out.
"""

from agent.core.model import Finding, Host, LaunchConfig
from agent.playbook import hardware as checks
from agent.playbook import preflights as of
from agent.playbook.preflight_entries import PreflightEntry
from agent.research.common import Progress, sentence
from agent.research.preflights import environment, flags, gate, hardware, literal, machine, model_config, source_name
from agent.research.preflights.reports import Report
from agent.research.sources import Sources


async def preflight(
    sources: Sources,
    entry: PreflightEntry,
    host: Host,
    config: LaunchConfig,
    table_of: flags.TableOf,
    progress: Progress,
) -> Finding:
    """Carry out one check. Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    report = await _check(sources, entry, host, config, table_of, progress)
    return Finding(summary=sentence(report.summary, sources.redact), quotes=report.quotes, outcome=report.outcome)


async def _check(
    sources: Sources,
    entry: PreflightEntry,
    host: Host,
    config: LaunchConfig,
    table_of: flags.TableOf,
    progress: Progress,
) -> Report:
    match entry.check:
        case of.TableHasKey() as check:
            return await literal.check_table(sources, check, host, progress)
        case of.ListContains() as check:
            return await literal.check_list(sources, check, host, progress)
        case of.GpuGate() as check:
            return await gate.check_gate(sources, check, host, progress)
        case of.SourceName() as check:
            return await source_name.check_name(sources, check, progress)
        case of.FlagKnown() as check:
            return await flags.check_flag(sources, check, config, table_of, progress)
        case of.ModuleImportable() as check:
            return await environment.check_import(sources, check, config, progress)
        case of.PythonPackage() as check:
            return await environment.check_package(sources, check, config, progress)
        case of.CommandVersion() as check:
            return await machine.check_command(sources, check, config, progress)
        case of.GpuCheck() as check:
            return await machine.check_gpu(sources, check, host, config, progress)
        case of.Topology() as check:
            return machine.check_topology(check, host, config)
        case checks.DriverOption() as check:
            return await hardware.check_option(sources, check, progress)
        case checks.KernelArg() as check:
            return await hardware.check_argument(sources, check, progress)
        case checks.PcieLink() as check:
            return await hardware.check_link(sources, check, host, config, progress)
        case checks.Peers() as check:
            return await hardware.check_peers(sources, check, host, config, progress)
        case checks.PowerLimit() as check:
            return await hardware.check_power(sources, check, host, config, progress)
        case checks.Numa() as check:
            return await hardware.check_numa(sources, check, host, config, progress)
        case of.CudaCheck() as check:
            return await environment.check_cuda(sources, check, host, config, progress)
        case of.ModelConfig() as check:
            return await model_config.check_model(sources, check, config, progress)
        case of.PathCheck() as check:
            return await machine.check_path(sources, check)
        case of.DiskFree() as check:
            return await machine.check_disk(sources, check, progress)
        case of.PortFree() as check:
            return await machine.check_port(sources, check, config, progress)
        case of.HttpCheck() as check:
            return await machine.check_http(sources, check, progress)
        case of.EnvCheck() as check:
            return environment.check_env(check, config)
