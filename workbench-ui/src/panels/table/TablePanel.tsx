/** A panel that is one table: what it is about, and what became of the request behind it. */

import type { ComponentChildren } from "preact";
import { BusyLine, Fault } from "../Answered";
import type { Answer } from "../useRequest";
import { PinButton } from "../window";
import { Table, type TableProps } from "./Table";

export interface TablePanelProps<R> extends Omit<TableProps<R>, "tools"> {
  /** Of the rows; null when they are in the store. */
  answer?: Answer<unknown>;
  /** Stands before what is said of the rows. */
  controls?: ComponentChildren;
  /** What the rows are and how many. */
  note: ComponentChildren;
  /** Do the rows follow the window? */
  followsWindow?: boolean;
}

export function TablePanel<R>({ answer, controls, note, followsWindow = true, ...table }: TablePanelProps<R>) {
  return (
    <div class="panel-single">
      <div class="panel-part">
        {answer && (
          <>
            <BusyLine of={answer} />
            <Fault of={answer} />
          </>
        )}
        <Table
          {...table}
          tools={
            <>
              {controls}
              <span class="tools-note">{note}</span>
              {followsWindow && <PinButton />}
            </>
          }
        />
      </div>
    </div>
  );
}
