import * as common from '@grafana/grafana-foundation-sdk/common';
import * as board from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimeseriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { overview } from './dashboards/overview.js';
import type { DashboardSpec, PanelSpec } from './dashboards/panel.js';
import { processBoard } from './dashboards/process.js';
import { queues } from './dashboards/queues.js';
import { serverBoard } from './dashboards/server.js';

export const specs: readonly DashboardSpec[] = [overview, serverBoard, queues, processBoard];

const datasource = { type: 'prometheus', uid: `\${datasource}` };
const statHeight = 5;
const graphHeight = 8;

/** Grafana's JSON of every dashboard. */
export function dashboards(): board.Dashboard[] {
  return specs.map(dashboardOf);
}

function dashboardOf(spec: DashboardSpec): board.Dashboard {
  const builder = new board.DashboardBuilder(spec.title)
    .uid(spec.uid)
    .description(spec.description)
    .tags(['trawl'])
    .readonly()
    .timezone('browser')
    .refresh('30s')
    .time({ from: 'now-6h', to: 'now' })
    .tooltip(board.DashboardCursorSync.Crosshair)
    .withVariable(new board.DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'))
    .withVariable(labelVariable('server', 'Server', 'label_values(trawl_scrapes_settled_total, server)'))
    .withVariable(
      labelVariable('tool', 'Tool', 'label_values(trawl_scrapes_settled_total{server=~"$server"}, tool)'),
    )
    .annotation(alertsShown())
    .link(
      new board.DashboardLinkBuilder('Trawl dashboards')
        .type(board.DashboardLinkType.Dashboards)
        .tags(['trawl'])
        .asDropdown(true)
        .includeVars(true)
        .keepTime(true),
    );
  for (const [index, { panel, place }] of laidOut(spec.panels).entries()) {
    builder.withPanel(panelOf(panel, index + 1, place));
  }
  return builder.build();
}

function labelVariable(name: string, label: string, query: string): board.QueryVariableBuilder {
  return new board.QueryVariableBuilder(name)
    .label(label)
    .datasource(datasource)
    .query({ query, refId: name })
    .definition(query)
    .refresh(board.VariableRefresh.OnTimeRangeChanged)
    .sort(board.VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ text: ['All'], value: ['$__all'] });
}

function alertsShown(): board.AnnotationQueryBuilder {
  return new board.AnnotationQueryBuilder()
    .name('Alerts')
    .datasource(datasource)
    .enable(true)
    .iconColor('red')
    .expr('ALERTS{alertname=~"Trawl.+",alertname!="TrawlWatchdog",alertstate="firing"}')
    .titleFormat('{{alertname}}')
    .textFormat('{{server}} {{tool}} ({{severity}})')
    .tagKeys('alertname,severity,server,tool')
    .step('60s');
}

/** From left to right, a new row when the width is used up or the height changes. */
function laidOut(panels: readonly PanelSpec[]): { panel: PanelSpec; place: board.GridPos }[] {
  let [x, y, height] = [0, 0, 0];
  return panels.map((panel) => {
    const h = panel.kind === 'stat' ? statHeight : graphHeight;
    if (x + panel.width > 24 || (height !== 0 && h !== height)) {
      y += height;
      x = 0;
    }
    height = h;
    const place = { x, y, w: panel.width, h };
    x += panel.width;
    return { panel, place };
  });
}

function panelOf(spec: PanelSpec, id: number, place: board.GridPos): StatBuilder | TimeseriesBuilder {
  const panel = spec.kind === 'stat' ? statOf() : linesOf(spec);
  panel
    .id(id)
    .title(spec.title)
    .description(spec.description)
    .datasource(datasource)
    .gridPos(place)
    .unit(spec.unit)
    .thresholds(thresholdsOf(spec))
    .links([
      new board.DashboardLinkBuilder(`Runbook: ${spec.runbook}`)
        .type(board.DashboardLinkType.Link)
        .url(`/public/runbooks/${spec.runbook}.md`)
        .targetBlank(true),
    ]);
  if (spec.min !== undefined) panel.min(spec.min);
  if (spec.max !== undefined) panel.max(spec.max);
  for (const [index, [expr, legend]] of spec.queries.entries()) {
    panel.withTarget(
      new DataqueryBuilder()
        .refId(String.fromCharCode(65 + index))
        .datasource(datasource)
        .expr(expr)
        .legendFormat(legend),
    );
  }
  return panel;
}

function statOf(): StatBuilder {
  return new StatBuilder()
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(common.BigValueGraphMode.Area);
}

function linesOf(spec: PanelSpec): TimeseriesBuilder {
  const panel = new TimeseriesBuilder()
    .lineWidth(1)
    .fillOpacity(spec.kind === 'stacked' ? 30 : 5)
    .showPoints(common.VisibilityMode.Auto)
    .tooltip(new common.VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi))
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.List)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true),
    );
  if (spec.kind === 'stacked') {
    panel.stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal));
  }
  if (spec.thresholds !== undefined) {
    const style = new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed);
    panel.thresholdsStyle(style);
  }
  return panel;
}

function thresholdsOf({ thresholds = {} }: PanelSpec): board.ThresholdsConfigBuilder {
  const steps: board.Threshold[] = [{ value: null, color: 'green' }];
  if (thresholds.warn !== undefined) steps.push({ value: thresholds.warn, color: 'orange' });
  if (thresholds.serious !== undefined) steps.push({ value: thresholds.serious, color: 'red' });
  return new board.ThresholdsConfigBuilder().mode(board.ThresholdsMode.Absolute).steps(steps);
}
